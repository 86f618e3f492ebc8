"""Two visitors of a server that others can reach: nobody sees what the other one dropped."""

import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.addresses import PAGES, parameters, query
from tests.browser.conftest import ROOT, SETTLED, Visitor, serve
from tests.conftest import picture

pytestmark = [pytest.mark.browser, pytest.mark.loads]
NAME, RESULTS = "secret-of-a.png", "secret-of-a.json"
# What no query made of names and values holds: broken escapes, names without values.
ODD = (
    "*_models=a&*_models=a&*_root=%00&*_root=..%2F..&*_frames=%ff%fe&*_frames&=&&*_job=&=x&*_job=%"
)
RAW_PATHS = (
    "media/../../../../etc/passwd",
    "media/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "app/static/../../../etc/passwd",
    "_stcore/upload_file/../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
)


@pytest.fixture(scope="module")
def reachable(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app on every address of this machine."""
    variables = {"STAGESCOPE_MODELS": str(tiny_folder / "models.toml"),
                 "STREAMLIT_SERVER_ADDRESS": "0.0.0.0"}  # fmt: skip
    yield from serve(tmp_path_factory.mktemp("reachable"), variables)


def settled(page: Page, address: str) -> str:
    page.goto(address)
    page.locator(SETTLED).wait_for()
    page.locator('[data-testid="stSkeleton"]').first.wait_for(state="detached")
    return page.content()


def fetched(address: str) -> bytes:
    """What an address gives to anybody, whatever its status."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        return bytes(error.read())


@pytest.mark.slow
def test_an_upload_and_what_came_of_it_are_its_visitors_alone(
    context: BrowserContext, reachable: str, other: Page, tmp_path: Path
) -> None:
    first, requests = Visitor(context.new_page(), reachable), list[str]()
    first.page.on("request", lambda request: requests.append(request.url))
    page = first.open("?compare_tokens=12&compare_models=Tiny+llava").page
    first.run()
    answers = first.answers()
    other.goto(page.url)  # control: a run on a sample of a dataset opens by its link
    assert Visitor(other, reachable).answers() == answers

    first.own_files()
    upload = page.locator(".st-key-compare_files input[type=file]")
    upload.set_input_files(picture(tmp_path / NAME, 1))
    page.get_by_alt_text(f"Preview of sample {NAME}.").wait_for()
    first.run()
    (answer,) = first.answers()
    page.get_by_role("tab", name="What each model saw").click()
    sheet = page.locator("[data-testid=stMain] img").first.get_attribute("src") or ""
    assert sheet.startswith("data:") and len(sheet) > 200 and answer.strip()
    page.get_by_role("tab", name="Draft").click()
    page.locator(".st-key-compare_draft_run button").click()
    page.wait_for_url(re.compile("compare_draft_job="), wait_until="commit")
    expect(page.locator(".st-key-small_draft_subject")).to_be_visible()
    known, tries = re.findall(r"(?:jobs|job)=([0-9a-f]{12})", page.url), [page.url]
    assert len(known) == 2

    page.locator(".st-key-history_save button").filter(visible=True).click()
    page.get_by_text("Saved: open").click()
    page.get_by_text("for this visit only").first.wait_for()
    name = page.url.partition("results_runs=")[2].partition("&")[0]
    (tmp_path / RESULTS).write_text('{"of": "a"}')
    page.get_by_role("link", name="Published files").click()
    upload = page.locator('[class*="st-key-published_import_files"] input[type=file]')
    upload.set_input_files(tmp_path / RESULTS)
    page.get_by_text(f"1 file cannot be used: {RESULTS}").wait_for()

    folders = [str(p) for p in Path(tempfile.gettempdir()).glob("stagescope-visit-*/*/your-files")]
    odd = [*known, name, f"{folders[0]}/1.png"]
    tries += [page.url, f"{reachable}results", f"{reachable}results?results_runs={name}"]
    for place in PAGES:
        every = [(one, value) for one in parameters(place) for value in odd]
        every += [("compare_jobs", known[0]), ("compare_draft_job", known[1])]
        tries.append(reachable + ("" if place == "compare" else place) + query(every))
    for address in tries:
        content = settled(other, address)
        assert not any(one in content for one in (sheet, f"own files · {NAME}", RESULTS)), address
        assert "of your own files: for" not in content, address
        assert answer.strip() not in other.locator("[data-testid=stMain]").inner_text(), address
        expect(other.locator('[data-testid="stException"]')).to_have_count(0)

    puts = [one for one in requests if "/upload_file/" in one]
    assert len(puts) == 2  # files go in by these addresses, and never out
    assert not any(b"PNG" in fetched(put) or b'"of"' in fetched(put) for put in puts)
    media = {fetched(one) for one in requests if one.startswith(f"{reachable}media/")}
    assert media <= {(ROOT / "ui" / "icon.png").read_bytes()}  # of the visit's files there is none


@pytest.mark.slow
def test_no_address_of_the_server_reads_a_file_or_ends_in_an_exception(
    reachable: str, other: Page
) -> None:
    for path in RAW_PATHS:
        assert b"root:" not in fetched(reachable + path)
    settled(other, f"{reachable}?compare_root={ROOT}")
    expect(other.get_by_text("is not available here").filter(visible=True).first).to_be_visible()
    for name in PAGES:
        path = "" if name == "compare" else name
        settled(other, f"{reachable}{path}?{ODD.replace('*', name)}")
        expect(other.locator('[data-testid="stException"]')).to_have_count(0)
