"""A bundle opened as a file: nothing runs that is not ours, and every text is text."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from engine.report import bundle
from tests import fabricate
from tests.conftest import slow_unless

pytestmark = pytest.mark.browser
HEAD = "name => document.querySelector('#sample h3')?.textContent == name"
RUN = "hacked=1"
TAGS = (
    *(f"<{tag} {event}={RUN}>" for tag, event in {
        "img src=x": "onerror", "svg": "onload", "video src=x": "onerror", "body": "onload",
        "details open": "ontoggle", "input autofocus": "onfocus"}.items()),
    *(f"<{tag}//evil.example>" for tag in (
        "base href=", "form action=", "link rel=stylesheet href=", "object data=", "embed src=",
        "meta http-equiv=refresh content=0;url=", "iframe src=")),
    f"<script>{RUN}</script>", f"</script><script>{RUN}</script>",
    f"<math><mtext></script><script>{RUN}</script>", f"<a href=javascript:{RUN}>x</a>",
    "<style>*{display:none}</style>", "<!--", "-->", "]]>",
)  # fmt: skip
WORDS = (
    "'", '"', "`${hacked=1}`", "\\", "\\u003cscript\\u003e", f"\u2028{RUN}\u2028", "\u2029",
    "\x07", "\u202etxt.exe", "../../etc/passwd", "..\\..\\x", "a/b/c", "__proto__", "constructor",
    "{{ 7*7 }}", "%3Cscript%3E", "&lt;script&gt;", "long " * 4000,
    "\U0001f600 \u05d0\u0628 e\u0301",
)  # fmt: skip


@pytest.mark.parametrize("one_file", slow_unless([False], [False, True]))
def test_forty_hostile_texts_do_nothing(
    one_file: bool, context: BrowserContext, tmp_path: Path
) -> None:
    hostile = [*TAGS, *WORDS]
    rows = [
        fabricate.row(model, f"{number} {text[:200]}", text=text, prompt=text)
        for number, text in enumerate(hostile)
        for model in ("ev", "vl")
    ]
    rows.append(fabricate.failed("ev", "z", TAGS[0]))
    titles = {"ev": TAGS[1], "vl": WORDS[1]}
    run, folder = fabricate.run(tmp_path / "r", rows, titles=titles), tmp_path / "out"
    if one_file:
        folder.mkdir()
        (folder / bundle.INDEX).write_text(bundle.page([run]), encoding="utf-8")
    else:
        bundle.write([run], folder)
    page, asked, said = context.new_page(), list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((folder / bundle.INDEX).as_uri())
    for number, text in enumerate(hostile):
        page.locator("#list button").nth(number).click()
        page.wait_for_function(HEAD, arg=f"{number} {text[:200]}")
        assert page.locator("#sample .answer").first.text_content() == text
    assert page.evaluate("typeof hacked") == "undefined" and said == []
    assert all(url.startswith(folder.as_uri()) for url in asked)
    assert page.locator("#sample script, #list script, #sample iframe").count() == 0

    page.locator("#search").fill("etc/passwd")
    expect(page.locator("#list button")).to_have_count(1)
    page.locator("#search").fill("")
    page.locator("#kind").select_option("failed")
    expect(page.locator("#list button")).to_have_count(1)
    page.reload()  # the address names the sample
    page.wait_for_function(HEAD, arg=f"{len(hostile) - 1} {hostile[-1]}")


def test_a_replay_shows_words_at_their_times_and_ends_with_the_answer(
    context: BrowserContext, tmp_path: Path
) -> None:
    rows = [
        fabricate.row("ev", "s", gaps=(60_000.0,), text="\U0001f600 Hi.", text_ends=[1, 5]),
        fabricate.row("vl", "s", text="A lane.", text_ends=[1, 1, 6, 7]),
    ]
    path = tmp_path / "report.html"
    path.write_text(bundle.page([fabricate.run(tmp_path / "r", rows)]), encoding="utf-8")
    page = context.new_page()
    page.goto(path.as_uri())
    page.get_by_role("button", name="Replay", exact=True).click()
    first, second = page.locator("#sample .card > .answer").all()
    expect(second).to_have_text("A lane.")
    expect(first).to_have_text("\U0001f600")
    page.evaluate("() => { const now = performance.now(); performance.now = () => now + 1e6; }")
    expect(first).to_have_text("\U0001f600 Hi.")


def test_the_search_finds_words_of_answers_in_chunks_that_nobody_opened(
    context: BrowserContext, tmp_path: Path
) -> None:
    rows = fabricate.pair(bundle.CHUNK + 3)
    rows[-1]["text"] = "A zebra crosses."
    bundle.write([fabricate.run(tmp_path / "r", rows)], tmp_path / "out")
    page = context.new_page()
    page.goto((tmp_path / "out" / bundle.INDEX).as_uri())
    page.locator("#search").fill("zebra")
    expect(page.locator("#list button")).to_have_count(1)
    page.locator("#list button").click()
    expect(page.locator("#sample .card > .answer").last).to_have_text("A zebra crosses.")
    page.locator("#search").fill("crosses")  # the list is made again
    expect(page.locator("#list button[aria-current=true]")).to_have_count(1)
    (tmp_path / "out" / "data" / "1.js").unlink()
    page.reload()
    expect(page.locator("#sample")).to_have_text("data/1.js is missing: copy the whole folder.")


def test_differences_are_named_after_the_first_answer_that_did_not_fail(
    context: BrowserContext, tmp_path: Path
) -> None:
    texts = {"ev": "A road.", "vl": "A wide road."}
    rows = [fabricate.row(model, "s", text=text) for model, text in texts.items()]
    run = fabricate.run(tmp_path / "r", [fabricate.failed("im", "s"), *rows])
    (tmp_path / "report.html").write_text(bundle.page([run]), encoding="utf-8")
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    expect(page.locator("#sample .card h4")).to_have_text(["im", "ev", "vl"])
    expect(page.locator("#sample details > summary")).to_have_text(["Differences from ev"])
