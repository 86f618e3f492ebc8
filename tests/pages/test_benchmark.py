"""The Benchmark page through AppTest: runs over tiny checkpoints, started, cancelled, resumed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event

import pytest
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.benchmark.cluster.ray_link import ClusterOptions
from engine.jobs import queue
from engine.jobs.benchmark_job import BenchmarkJob
from engine.jobs.queue import Job
from engine.storage import run_store
from engine.storage.plan import Plan
from engine.types import DecodeConfig
from tests.benchmark.cluster.pools import HerePool, one_thread
from tests.jobs import waiting
from tests.pages.conftest import Ends, Open
from tests.pages.reading import column, keys, tables, texts
from ui.widgets import dataset_picker

__all__ = ["one_thread"]
PAGE = "pages/benchmark.py"
TWO = {"which": "The first", "samples": "2", "tokens": "3", "models": ["Tiny llava"]}


@dataclass(eq=False)
class Holding(Job):
    """Has the device until it is let go."""

    going: Event = field(default_factory=Event)

    @property
    def title(self) -> str:
        return "Holding"

    def run(self) -> None:
        self.state = "running"
        while not self.going.wait(0.01) and not self.cancelled():
            pass
        self.state = "done"


@pytest.fixture
def held() -> Iterator[Holding]:
    job = Holding()
    queue.manager().submit(job)
    yield job
    job.going.set()


@pytest.fixture(autouse=True)
def _nothing_left_at_work() -> Iterator[None]:
    yield
    live = [job for job in queue.manager().all() if isinstance(job, BenchmarkJob)]
    for job in live:
        job.cancel()
        wait(job)


def bar(at: AppTest) -> str:
    return "".join(element.proto.text for element in at.get("progress")).replace("\\", "")


def job(at: AppTest) -> BenchmarkJob:
    found = queue.manager().get(at.session_state["benchmark_job"][0])
    assert isinstance(found, BenchmarkJob)
    return found


def wait(found: BenchmarkJob) -> BenchmarkJob:
    waiting.wait(found)
    return found


def test_an_end_while_the_page_is_drawn_offers_start(app: Open, ends_meanwhile: Ends) -> None:
    at = app(PAGE, **TWO)
    at.button(key="benchmark_start").click().run()
    ends_meanwhile(wait(job(at)))
    at.run()
    assert not at.button(key="benchmark_start").disabled
    assert "benchmark_cancel" not in keys(at)


def start(at: AppTest) -> AppTest:
    at.button(key="benchmark_start").click().run()
    assert not at.exception
    return at


def metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def test_the_page_says_what_to_do_and_how_much_it_would_be(app: Open) -> None:
    at = app(PAGE, repeat="3")
    assert "Planned: 126 results: 3 models × 14 samples × 3 repeats" in texts(at)
    assert "press Start (Ctrl+Enter)" in texts(at)
    assert at.code[0].value.startswith("python -m engine bench")
    assert "benchmark_cancel" not in keys(at)


def test_a_run_goes_from_start_to_its_results(app: Open) -> None:
    at = start(app(PAGE, **TWO))
    found = wait(job(at))
    at.run()
    assert found.state == "done" and "2 of 2 results · Finished" in bar(at)
    assert metrics(at)["Failed"] == "0"
    assert metrics(at)["Time left"] == "–"
    assert column(at, "done") == ["2"]
    (stages,) = (chart.proto.alt for chart in at.get("vega_lite_chart"))
    medians = re.findall(r"(\w+) ([\d.,]+) ms", stages)
    assert len(medians) > 3  # what the chart says, the table says
    told = [float(column(at, f"{name} (ms)")[0]) for name, _ in medians]
    assert told == pytest.approx([float(ms) for _, ms in medians], abs=0.0051)  # 0.423 and 0.42
    links = [link.proto for link in at.get("page_link")]
    assert found.folder is not None and found.folder.name in links[0].query_string
    assert links[0].label == "Open the results"
    plan = run_store.read(found.folder).header.plan
    assert plan.cache == "off" and plan.warmup == 1 and plan.decode == DecodeConfig(3)


def test_samples_at_once(app: Open) -> None:
    at = app(PAGE, **{**TWO, "samples": "3"}, batch="2")
    assert "1 model × 3 samples, 2 at once, after 1 warm-up batch per model" in texts(at)
    assert any("Only whole batches are timed" in one.value for one in at.caption)
    found = wait(job(start(at)))
    at.run()
    assert found.plan is not None and found.plan.batch == 2 and found.state == "done"
    assert column(at, "samples at once") == ["2"]
    assert "are not timed separately" in texts(at)


def test_the_widgets_make_the_plan(app: Open) -> None:
    changed = {**TWO, "models": ["Tiny llava", "Tiny eventgpt"], "repeat": "2", "extent": "Common"}
    more = {"order": "By turns", "length": "Forced", "cache": "Refresh", "warmup": "0"}
    at = app(PAGE, **changed, **more)
    at.segmented_control(key="benchmark_asks").set_value("one").run()
    at.text_area(key="benchmark_question").set_value("Is **this** plain?").run()
    plan = wait(job(start(at))).plan
    assert plan == Plan(
        models=("tiny-llava", "tiny-eventgpt"),
        samples=plan.samples,
        prompt="Is **this** plain?",
        repeat=2,
        warmup=0,
        order="interleaved",
        cache="refresh",
        decode=DecodeConfig(3, min_new_tokens=3),
        extent="stream",
    )
    assert len(plan.samples) == 2


def test_an_id_that_is_not_there_is_named_and_leaves_the_other_values(app: Open) -> None:
    at = app(PAGE, which="By id", repeat="3", models=["Tiny llava"])
    assert "Choose samples in the sidebar." in texts(at)
    assert at.button(key="benchmark_start").disabled
    ids = at.text_area(key="benchmark_ids")
    ids.set_value("scene_200052/000000\nnowhere\nneither").run()
    assert "'nowhere' is not in" in texts(at) and "1 more line" in texts(at)
    assert at.button(key="benchmark_start").disabled
    ids.set_value("scene_200052/000000").run()
    assert "1 sample × 3 repeats" in texts(at)


def test_another_session_and_another_visit_see_the_same_run(app: Open, held: Holding) -> None:
    first = start(app(PAGE, **TWO))
    second = app(PAGE)
    assert job(second) is job(first)
    assert second.query_params["benchmark_job"] == job(first).id
    first.switch_page("pages/models.py").run()
    first.switch_page(PAGE).run()
    assert "Queued" in bar(first)
    assert first.query_params["benchmark_job"] == job(first).id


def stopped_run(app: Open) -> str:
    """A run with one result of two, as a crash leaves it."""
    found = wait(job(start(app(PAGE, **TWO))))
    assert found.folder is not None
    lines = (found.folder / run_store.RESULTS).read_bytes().splitlines(keepends=True)
    (found.folder / run_store.RESULTS).write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    (found.folder / run_store.SUMMARY).unlink()
    return found.folder.name


def test_a_run_that_was_interrupted_is_offered_and_resumed(app: Open) -> None:
    stopped_run(app)
    at = app(PAGE)
    assert "1 result of 2 left" in texts(at)
    at.button(key="benchmark_resume").click().run()
    found = wait(job(at))
    at.run()
    assert found.state == "done" and "2 of 2 results" in bar(at)
    assert "left" not in texts(at)


def test_a_changed_run_is_refused_unless_told(app: Open) -> None:
    name = stopped_run(app)
    header = settings.load().runs_dir / name / "run.json"
    header.write_text(header.read_text().replace('"code": "', '"code": "0'))
    at = app(PAGE)
    at.button(key="benchmark_resume").click().run()
    wait(job(at))
    at.run()
    assert job(at).state == "failed" and "cannot be resumed" in texts(at)
    at.toggle(key="benchmark_force").set_value(True).run()
    at.button(key="benchmark_resume").click().run()
    assert wait(job(at)).state == "done"


def test_failures_come_with_their_reasons_as_plain_text(app: Open) -> None:
    demo = settings.load().demo_dir
    at = app(PAGE, **{**TWO, "warmup": "0"})
    for picture in [*demo.rglob("*.mp4"), *demo.rglob("*.png"), *demo.rglob("*.jpg")]:
        picture.unlink()
        picture.write_bytes(b"no picture")
    found = wait(job(start(at)))
    at.run()
    assert found.seen.failed == 2 and metrics(at)["Failed"] == "2"
    assert column(at, "total (ms)") == ["–"]
    reasons = [text.value for text in at.text if text.value.startswith("Tiny llava, sample")]
    assert len(reasons) == 2


def test_a_link_to_a_run_of_another_server_says_so(app: Open) -> None:
    at = app(PAGE, job="nobody")
    assert "no longer active on this server" in texts(at)


@pytest.fixture
def on_workers(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> HerePool:
    """A cluster of two nodes, in this process."""
    from engine.benchmark.cluster import run_session

    pool = HerePool({"x": "n1", "y": "n2"})
    monkeypatch.setenv("STAGESCOPE_RAY_ADDRESS", "head:6379")
    monkeypatch.setattr(run_session, "Link", lambda *_: pool)
    monkeypatch.setattr(run_session, "TICK_S", 0.0)
    return pool


def test_an_address_in_the_settings_is_enough_for_ray(app: Open, on_workers: HerePool) -> None:
    at = app(PAGE, **TWO)
    assert at.segmented_control(key="benchmark_where").value == "ray"
    assert "Ray at head:6379" in texts(at)
    found = wait(job(start(at)))
    at.run()
    assert found.error == "" and found.state == "done" and on_workers.closed
    assert "2 workers on 2 nodes took part" in [one.value for one in at.subheader]
    assert "Medians" in [one.value for one in at.subheader]
    assert sum(map(int, column(at, "results"))) == 2 and set(column(at, "worker")) == {"x", "y"}
    heads = [head for rows in tables(at) for head in rows[0]]
    assert "worker" in heads and not {"shared", "rate (/s)"} & set(heads)


def test_only_a_run_on_ray_names_its_cluster(app: Open, on_workers: HerePool) -> None:
    at = app(PAGE, **TWO)
    assert "Ray at head:6379: model by model, one sample at a time." in texts(at)
    at.segmented_control(key="benchmark_where").set_value("here").run()
    assert "Ray at head:6379" not in texts(at)


def test_how_many_workers_and_what_each_takes(app: Open, on_workers: HerePool) -> None:
    at = app(PAGE, **TWO)
    assert at.number_input(key="benchmark_workers").value is None
    at = app(PAGE, **TWO, workers="2", cpus="8", gpus="0.5")
    found = wait(job(start(at)))
    assert found.cluster == ClusterOptions("head:6379", 2, 8, 0.5)
    assert isinstance(found.cluster.workers, int) and isinstance(found.cluster.cpus, int)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("workers", "0", "workers is 0: choose a value from 1 to 10,000."),
        ("cpus", "0", "cpus is 0: choose a value from 1 to 10,000."),
        ("gpus", "1.5", "gpus is 1.5: a worker takes 0, a part of 1 that is no less than 0.01"),
    ],
)
def test_workers_that_cannot_be_are_the_engines_sentence_and_leave_the_other_values(
    app: Open, on_workers: HerePool, name: str, value: str, sentence: str
) -> None:
    stopped_run(app)
    at = app(PAGE, **TWO, **{name: value}, repeat="3")
    assert sentence in texts(at) and at.button(key="benchmark_start").disabled
    assert at.button(key="benchmark_resume").disabled  # it would run elsewhere
    at.number_input(key=f"benchmark_{name}").set_value(1).run()
    assert "Planned: 6 results: 1 model × 2 samples × 3 repeats" in texts(at)


def test_a_link_keeps_its_number_of_samples(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as still:
        still.setattr(dataset_picker, "read", lambda _: None)
        at = app(PAGE, **{**TWO, "samples": "6"})
        assert "Choose a dataset in the sidebar." in texts(at)
    at.run()
    assert "1 model × 6 samples" in texts(at)
