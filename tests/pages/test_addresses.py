"""Odd addresses through AppTest: whatever a link says, no page raises."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.jobs import queue
from engine.jobs.benchmark_job import BenchmarkJob
from engine.media import dataset
from engine.storage.plan import Plan
from tests import fabricate
from tests.addresses import PAGES, Address, addresses, parameters
from tests.conftest import slow_unless
from tests.pages.conftest import ROOT, Open
from tests.pages.test_benchmark import Holding
from ui.widgets import dataset_picker

pytestmark = pytest.mark.loads
NUMBER = 12
HIDDEN = "hidden_sequence"


@pytest.fixture
def busy(app: Open) -> Iterator[list[str]]:
    """A server with finished, unfinished and copied runs and jobs of all states; their names."""
    base = settings.load().runs_dir
    for number in range(7):
        fabricate.run(base / f"run-{number}", fabricate.pair(3), finished=number > 5)
    for number in range(6):  # a copy has the id of its run
        shutil.copytree(base / f"run-{number}", base / f"run-{number}-copy")
    holding = Holding()
    queue.manager().submit(holding)
    plan = Plan(("tiny-llava",), ("s0",))
    queued = [BenchmarkJob(plan=plan, root=settings.load().demo_dir) for _ in range(3)]
    for job in queued:
        queue.manager().submit(job)
    queued[0].cancel()
    yield [*(folder.name for folder in base.iterdir()), *(job.id for job in queued), holding.id]
    for job in (*queued, holding):
        job.cancel()
    holding.going.set()


def visit(page: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    if page != "compare":
        at.switch_page(f"pages/{page}.py")
    return at


def go(at: AppTest, address: Address) -> AppTest:
    for name in {name for name, _ in address}:
        at.query_params[name] = [value for key, value in address if key == name]
    return at.run()


def told(at: AppTest) -> str:
    return "\n".join(at.exception[0].stack_trace[-1:]) or at.exception[0].message


@pytest.mark.parametrize("page", slow_unless(["compare"], PAGES))
def test_no_address_ends_in_an_exception(app: Open, busy: list[str], page: str) -> None:
    raised = {}
    for address in addresses(page, NUMBER, more=busy):
        at = go(visit(page), address)
        if at.exception:
            raised[str(address)[:200]] = told(at)
    assert not raised


@pytest.mark.parametrize("page", slow_unless(["compare"], PAGES))
def test_nor_does_going_back_to_one_within_a_visit(app: Open, page: str) -> None:
    """Back and Forward change the address of a page whose widgets are there already."""
    at, raised = visit(page).run(), {}
    for address in addresses(page, NUMBER, seed=1):
        for name in list(at.query_params):
            del at.query_params[name]
        if go(at, address).exception:
            raised[str(address)[:200]] = told(at)
    assert not raised


@pytest.mark.parametrize("page", slow_unless(["compare", "benchmark"], PAGES))
def test_no_parameter_opens_a_folder_that_is_not_offered(
    app: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    (tmp_path / HIDDEN).mkdir()
    records = [{"id": HIDDEN, "event_data": f"{HIDDEN}/000000.npy"}]
    (tmp_path / f"{dataset.STEM}.json").write_text(json.dumps(records))
    assert HIDDEN in str(go(visit("compare"), [("compare_root", str(tmp_path))]))  # control
    monkeypatch.setattr(dataset_picker, "on_loopback", lambda: False)
    at = go(visit(page), [(one, str(tmp_path)) for one in parameters(page)])
    assert HIDDEN not in str(at) and not at.exception
