"""Two visitors of a server that others can reach: nobody sees what the other one dropped."""

from __future__ import annotations

import json
import re
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from engine.jobs import queue
from engine.media import dataset
from tests.addresses import PAGES, parameters, query
from tests.browser.conftest import PATIENCE_MS, ROOT, SETTLED, Visitor, serve
from tests.conftest import picture

pytestmark = [pytest.mark.browser, pytest.mark.slow]
HIDDEN = "hidden_sequence"
NAME = "secret-of-a.png"
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


@pytest.fixture
def other(browser: Browser) -> Iterator[Page]:
    context: BrowserContext = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


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


def ids(address: str) -> list[str]:
    return re.findall(r"(?:jobs|job)=([0-9a-f]{12})", address)


def answer_about_own_file(visitor: Visitor, folder: Path) -> str:
    """The answer of the one chosen model about an uploaded picture."""
    page = visitor.page
    page.get_by_text("Own files", exact=True).click()
    upload = page.locator(".st-key-compare_files input[type=file]")
    upload.set_input_files(picture(folder / NAME, 1))
    page.get_by_text(f"own files · {NAME}").wait_for()
    visitor.run()
    (answer,) = visitor.answers()
    return answer


def test_an_upload_and_what_came_of_it_are_its_visitors_alone(
    context: BrowserContext, reachable: str, other: Page, tmp_path: Path
) -> None:
    first, requests = Visitor(context.new_page(), reachable), list[str]()
    first.page.on("request", lambda request: requests.append(request.url))
    page = first.open("?compare_tokens=12&compare_models=Tiny+llava").page
    answer = answer_about_own_file(first, tmp_path)
    sheet = page.locator("[data-testid=stMain] img").first.get_attribute("src") or ""
    assert len(sheet) > 200 and answer.strip()
    page.locator(SETTLED).wait_for()
    page.locator(".st-key-compare_draft summary").click()
    # By key: the opening box moves the button between the press and the release of a mouse.
    page.locator(".st-key-compare_draft_run button").press("Enter")
    page.wait_for_url(re.compile("compare_draft_job="), wait_until="commit")
    expect(page.locator(".st-key-small_draft_subject")).to_be_visible(timeout=PATIENCE_MS)
    known = ids(page.url)
    assert len(known) == 2

    folders = [str(p) for p in Path(tempfile.gettempdir()).glob("stagescope-visit-*/*/your-files")]
    odd = [*known, f"{folders[0]}/1.png"]
    tries = [page.url]
    for name in PAGES:
        every = [(one, value) for one in parameters(name) for value in odd]
        every += [("compare_jobs", known[0]), ("compare_draft_job", known[1])]
        tries.append(reachable + ("" if name == "compare" else name) + query(every))
    for address in tries:
        content = settled(other, address)
        assert sheet not in content and f"own files · {NAME}" not in content, address
        assert answer.strip() not in other.locator("[data-testid=stMain]").inner_text(), address
        expect(other.locator('[data-testid="stException"]')).to_have_count(0)
    expect(page.locator("[data-testid=stMain] img").first).to_have_attribute("src", sheet)

    (put,) = [one for one in requests if "/upload_file/" in one]
    assert not fetched(put).startswith(b"\x89PNG")  # files go in by this address, and never out
    media = {fetched(one) for one in requests if one.startswith(f"{reachable}media/")}
    assert media <= {(ROOT / "ui" / "icon.png").read_bytes()}  # of the visit's files there is none
    assert sheet.startswith("data:")


def test_a_saved_comparison_of_own_files_is_in_no_other_visit(
    context: BrowserContext, reachable: str, other: Page, tmp_path: Path
) -> None:
    first = Visitor(context.new_page(), reachable)
    page = first.open("?compare_tokens=12&compare_models=Tiny+llava").page
    answer = answer_about_own_file(first, tmp_path)
    page.locator(".st-key-history_save button").filter(visible=True).click()
    page.get_by_text("For this visit only").wait_for()
    page.get_by_text("Saved: open").click()
    page.wait_for_url(re.compile("results_runs="))
    page.get_by_text("of your own files: for this visit only").wait_for()  # control: here it opens
    name = page.url.partition("results_runs=")[2].partition("&")[0]
    for address in (page.url, f"{reachable}results", f"{reachable}results?results_runs={name}"):
        content = settled(other, address)
        assert NAME not in content and "of your own files: for" not in content, address
        assert answer.strip() not in other.locator("[data-testid=stMain]").inner_text(), address
        assert other.locator(f".st-key-results_pick_{name}").count() == 0
    expect(other.get_by_text("was not found")).to_be_visible()


def test_result_files_of_a_visit_are_in_no_link(
    context: BrowserContext, reachable: str, other: Page, tmp_path: Path
) -> None:
    page = context.new_page()
    settled(page, f"{reachable}results")
    (tmp_path / "secret-of-a.json").write_text('{"of": "a"}')
    upload = page.locator('[class*="st-key-results_import_files"] input[type=file]')
    upload.set_input_files(tmp_path / "secret-of-a.json")
    page.get_by_text("1 file cannot be used: secret-of-a.json").wait_for()
    for address in (page.url, f"{reachable}results?results_runs=visit"):
        assert "secret-of-a" not in settled(other, address), address


def test_control_a_run_on_a_dataset_sample_opens_by_its_link(
    context: BrowserContext, reachable: str, other: Page
) -> None:
    first = Visitor(context.new_page(), reachable)
    first.open("?compare_tokens=12&compare_models=Tiny+llava").run()
    answers = first.answers()
    other.goto(first.page.url)
    expect(other.get_by_text(re.compile("^Done"))).to_have_count(1)
    assert Visitor(other, reachable).answers() == answers


def test_no_parameter_opens_a_folder_that_is_not_offered(
    reachable: str, server: str, other: Page, tmp_path: Path
) -> None:
    hidden = tmp_path / "hidden"
    (hidden / HIDDEN).mkdir(parents=True)
    records = [{"id": HIDDEN, "event_data": f"{HIDDEN}/000000.npy"}]
    (hidden / f"{dataset.STEM}.json").write_text(json.dumps(records))
    assert HIDDEN in settled(
        other, f"{server}?compare_root={hidden}"
    )  # control: on loopback it opens
    folder = other.get_by_label("Or a folder or file on this machine")
    settled(other, f"{server}results")
    expect(folder).to_have_count(1)  # control
    for name in PAGES:
        path = "" if name == "compare" else name
        every = [(one, str(hidden)) for one in parameters(name)]
        assert HIDDEN not in settled(other, reachable + path + query(every)), name
        refused = other.get_by_text("is not available here", exact=False).filter(visible=True)
        if f"{name}_root" in parameters(name):
            expect(refused.filter(has_text="dataset").first).to_be_visible(timeout=PATIENCE_MS)
        expect(folder).to_have_count(0)


@pytest.mark.parametrize("path", RAW_PATHS)
def test_no_link_of_the_server_reads_a_file(reachable: str, path: str) -> None:
    assert b"root:" not in fetched(reachable + path)


def test_ids_of_jobs_cannot_be_guessed() -> None:
    """12 hex digits of a random UUID: 48 bits."""
    from engine.jobs.run_job import RunJob

    found = {RunJob(request=None).id for _ in range(100)}  # type: ignore[arg-type]
    assert len(found) == 100 and all(re.fullmatch("[0-9a-f]{12}", one) for one in found)
    assert queue.KEPT < 16**12
