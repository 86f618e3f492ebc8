"""What programs and notebooks call: the results are the engine's own, and nothing mixes."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import stagescope as ss
from engine import public, settings
from engine.jobs import queue
from engine.jobs.queue import Job
from engine.jobs.run_job import RunJob
from engine.storage import run_store
from engine.types import RunOptions, RunRequest, arranged
from tests import recordings
from tests.conftest import picture

pytestmark = pytest.mark.loads
SHORT: dict[str, Any] = {"max_new_tokens": 6, "progress": False}
MODELS = ["tiny-llava", "tiny-eventgpt"]


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path) -> Path:
    return recordings.root(tmp_path / "root", 3)


def test_a_function_is_told_each_step(root: Path, tmp_path: Path) -> None:
    told: list[str] = []
    ss.compare("id-1", "tiny-llava", dataset=root, progress=told.append, max_new_tokens=2)
    assert told[0].startswith("tiny-llava: ") and told[0].endswith("answering ...")
    told.clear()
    how: dict[str, Any] = {"out": tmp_path / "run", "length": "forced:4", "samples": ["id-2"]}
    found = ss.bench("tiny-llava", dataset=root, progress=told.append, **how)
    assert told[0] == f"The run is saved in {how['out']}" and told[-1].startswith("1 of 1 results")
    assert set(found.to_pandas()["new_tokens"]) == {4}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_a_function_raises_ends_the_call_and_no_later_one(
    error: type[BaseException], root: Path
) -> None:
    def odd(line: str) -> None:
        raise error(line)

    for _ in range(2):
        with pytest.raises(error, match="answering"):
            ss.compare("id-1", MODELS, dataset=root, progress=odd, repeat=3)
    assert not ss.compare("id-1", "tiny-llava", dataset=root, **SHORT).answers.empty
    assert all(job.ended for job in queue.manager().all())


def own_answer(sample: ss.Sample, model: str, question: str = "What is it?") -> str:
    """Of a job that nobody wraps."""
    how = RunOptions(**arranged({"max_new_tokens": 6, "cache": "off"}))
    job = RunJob(request=RunRequest(sample, model, question, how))
    job.work()
    assert job.result is not None, job.error
    return job.result.generation.text


def test_a_comparison_has_the_models_answers_and_is_a_run(root: Path, tmp_path: Path) -> None:
    sample = ss.samples(root)[1]
    for given in (sample, "id-1", "q1/000000"):
        found = ss.compare(
            given, MODELS, "What is it?", dataset=root, repeat=2, cache="off", **SHORT
        )
        assert list(found.answers.columns) == MODELS and list(found.answers.index) == ["id-1"]
        said = found.answers.loc["id-1"]
        assert dict(said) == {model: own_answer(sample, model) for model in MODELS}
    assert list(found.times.index) == MODELS and set(found.times["runs"]) == {"measured"}
    table = found.to_pandas()
    totals = table[table["group"] == "measured"].groupby("label")["total_ms"].median()
    assert dict(found.times["total"]) == pytest.approx(dict(totals))
    assert len(table) == 4 and set(table["new_tokens"]) == {6}

    assert ss.open_run(found.folder).answers.equals(found.answers)
    with pytest.raises(ss.StageScopeError, match="exists already"):
        found.save(tmp_path)
    kept = found.save(tmp_path / "new" / "kept")
    listed = found.save()
    assert listed.parent == settings.load().runs_dir and run_store.read(listed).state == "finished"
    text = repr(found)
    temporary = found.folder
    del found
    assert not temporary.exists() and repr(ss.open_run(kept)) == repr(ss.open_run(listed.name))
    assert all(name in text for name in MODELS)
    opened = ss.open_run(kept)
    shutil.rmtree(kept)
    for gone in (opened.to_pandas, opened.save, lambda: opened.answers):
        with pytest.raises(ss.StageScopeError):
            gone()


def test_a_sample_may_be_a_file_a_folder_pictures_or_arrays(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "pictures"
    paths = [picture(folder / f"{number}.png", number) for number in range(1, 9)]
    images = [Image.open(path) for path in paths]
    arrays = [np.asarray(one) for one in images]

    def said(given: Any, model: str) -> str:
        return str(ss.compare(given, model, "What is it?", **SHORT).answers.iloc[0, 0])

    one, other = (said(path, "tiny-llava") for path in paths[:2])
    assert said(str(paths[0]), "tiny-llava") == said(images[0], "tiny-llava") == one != other
    assert said(arrays[0], "tiny-llava") == one
    several = said(folder, "tiny-video_llava")
    assert several == said(images, "tiny-video_llava") == said(arrays, "tiny-video_llava")
    assert several == said(paths, "tiny-video_llava") != said(paths[::-1][:2], "tiny-video_llava")

    moments, draw = np.arange(2_000), np.random.default_rng(0)
    events = np.zeros(2_000, dtype=[("x", "u2"), ("y", "u2"), ("t", "i8"), ("p", "u1")])
    for key, values in zip("xytp", draw.integers(0, (30, 30, 1, 2), (2_000, 4)).T, strict=True):
        events[key] = values
    events["t"] = moments * 25
    np.save(tmp_path / "events.npy", events)
    assert said(events, "tiny-eventgpt") == said(tmp_path / "events.npy", "tiny-eventgpt")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda root: ss.compare("nobody", MODELS, dataset=root), "Sample 'nobody' is not in"),
        (lambda root: ss.compare("id-1", "tiny-gone", dataset=root), "tiny-gone"),
        (lambda root: ss.compare("id-1", [], dataset=root), "name at least one model"),
        (lambda root: ss.compare("id-1", ["tiny-llava"] * 2, dataset=root), "tiny-llava"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, repeat=0), "repeat is 0"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, tokens=3),
         "'tokens' is no option: known are max_new_tokens, "),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, top_p=2), "top_p is 2"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, window="x"), "'x'"),
        (lambda root: ss.compare(root / "gone.png", MODELS), "gone.png is not there"),
        (lambda root: ss.compare([], "tiny-llava"), "There is no file"),
        (lambda root: ss.compare([3], "tiny-llava"), "A sample cannot be int"),
        (lambda root: ss.compare(None, "tiny-llava"), "A sample cannot be NoneType"),
        (lambda root: ss.compare({"a": 1}, "tiny-llava"), "A sample cannot be dict"),
        (lambda root: ss.compare("", "tiny-llava"), "sample is ''"),
        (lambda root: ss.compare("a" * 5000, "tiny-llava"), "File name too long"),
        (lambda root: ss.compare(Image.new("RGB", (0, 5)), MODELS), "without pixels"),
        (lambda root: ss.compare(np.zeros((4, 5, 3)), MODELS), "An array [4, 5, 3] of float64"),
        (lambda root: ss.compare(np.zeros((2, 4, 5, 3), "u1"), MODELS), "An array [2, 4, 5, 3]"),
        (lambda root: ss.compare("id-1", None, dataset=root), "name at least one model"),
        (lambda root: ss.compare("id-1", [5], dataset=root), "a model is 5"),
        (lambda root: ss.compare("id-1", MODELS, None, dataset=root), "question is None"),
        (lambda root: ss.compare("id-1", MODELS, dataset=5), "dataset is 5: give a path"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, repeat=True), "repeat is True"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, max_new_tokens=2.5),
         "max_new_tokens is 2.5: give a whole number"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, seed="5"), "seed is '5'"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, window=3), "window is 3"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, extent=[1]), "extent is [1]"),
        (lambda root: ss.bench(MODELS, dataset=root, repeat=True), "repeat is True"),
        (lambda root: ss.bench(MODELS, dataset=root, samples=1.5), "samples is 1.5"),
        (lambda root: ss.bench(MODELS, dataset=root, out=5), "out is 5"),
        (lambda root: ss.bench(MODELS, dataset=root, bogus=1), "known are repeat, warmup"),
        (lambda root: ss.verify(MODELS, dataset=root, batch=2.5), "batch is 2.5"),
        (lambda root: ss.verify(MODELS, dataset=root, cache="off"), "'cache' is no option"),
        (lambda root: ss.verify(["tiny-gone"], dataset=root), "tiny-gone"),
        (lambda root: ss.bench(MODELS, dataset=root, seed=1), "'seed' is no option"),
        (lambda root: ss.explain("id-1", "tiny-llava", "x", dataset=root, mode="hooked"), "'mode'"),
        (lambda root: ss.explain("id-1", "tiny-llava", None, dataset=root), "words is None"),
        (lambda root: ss.explain("id-1", "tiny-llava", "x", dataset=root, time="x"), "time is 'x'"),
        (lambda root: ss.compare(root / "EventGPT_Instruction_Subset.json", MODELS), "Subset.json"),
        (lambda root: ss.compare(np.zeros((3, 4)), MODELS), "An array [3, 4] of float64"),
        (lambda root: ss.bench(MODELS, dataset=root, samples=0), "samples is 0"),
        (lambda root: ss.bench(MODELS, dataset=root, samples=["x"]), "'x'"),
        (lambda root: ss.bench(MODELS, dataset=root, samples={"x": 1}), "'x'"),
        (lambda root: ss.bench(MODELS, dataset=root, samples=b"x"), "give a number, or ids"),
        (lambda root: ss.bench(MODELS, dataset=root, length=3), "length is 3"),
        (lambda root: ss.bench(MODELS, dataset=root, samples=[]), "name at least one"),
        (lambda root: ss.bench(MODELS, dataset=root, samples=object()), "give a number, or ids"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, progress="x"), "progress is 'x'"),
        (lambda root: ss.compare("id-1", MODELS, dataset=root, progress=None), "progress is None"),
        (lambda root: ss.verify(MODELS, dataset=root, samples=0), "a whole number from 1"),
        (lambda root: ss.bench(MODELS, dataset=root / "gone"), "does not exist"),
        (lambda root: ss.verify(MODELS, dataset=root, words="x"), "'words' is no option"),
        (lambda root: ss.explain("id-0", "tiny-gone", "words", dataset=root), "tiny-gone"),
        (lambda root: ss.open_run(root), "is not a run"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_leaves_nothing(
    call: Callable[[Path], object], words: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = root.parent / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with pytest.raises(ss.StageScopeError) as caught:
        call(root)
    assert not [*temporary.iterdir()] and not [*(root.parent / "cache").rglob("run.json")]
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_model_that_fails_leaves_the_answers_of_the_others(root: Path) -> None:
    (root / "event_image" / "q0" / "000000_0.png").write_bytes(b"odd")
    found = ss.compare("id-0", MODELS, dataset=root, **SHORT)
    assert list(found.answers.columns) == ["tiny-llava"]
    errors = dict(found.to_pandas().set_index("label")["error"])
    assert errors["tiny-llava"] == "" and "000000_0.png" in errors["tiny-eventgpt"]
    assert "no answer: " in found._repr_html_()


def test_a_dataset_run_a_verification_and_an_explanation(root: Path, tmp_path: Path) -> None:
    run = ss.bench(MODELS[0], dataset=root, samples=2, out=tmp_path / "run", warmup=0, **SHORT)
    with pytest.warns(UserWarning, match="samples is 1,000; the dataset has only 3: all are used"):
        public.planned(MODELS, public.read_dataset(root), 1000, None, {})
    assert list(run.answers.index) == ["id-0", "id-1"] and run.folder == tmp_path / "run"
    chosen = ss.bench(MODELS[0], dataset=root, samples=["id-2"], question="Why?", **SHORT)
    assert list(chosen.answers.index) == ["id-2"] and set(chosen.to_pandas()["prompt"]) == {"Why?"}
    assert chosen.folder.parent == settings.load().runs_dir

    proof = ss.verify(MODELS[0], dataset=root, samples=1, runs=3, max_new_tokens=8, progress=False)
    assert {*proof.verified} == {MODELS[0]} and proof.path is not None and proof.path.is_file()
    # A time may fail on a busy machine; an answer may not.
    outcomes = dict(proof.to_pandas().set_index("check")["outcome"])
    assert outcomes["equal_decoupled"] == outcomes["equal_hooked"] == "passed"
    state = "verified" if proof.verified[MODELS[0]] else "NOT verified"
    assert f"{MODELS[0]}: {state}" in repr(proof)
    kept = json.loads((proof.save(tmp_path / "proof") / "certificate.json").read_text())
    assert kept["hash"] == proof.certificate["hash"] and "verified" in proof._repr_html_()

    words = str(run.answers.loc["id-0", MODELS[0]])
    small = {"grid": 2, "side": 1, "coarse": 0}
    found = ss.explain("id-0", MODELS[0], words, "What is it?", dataset=root, **small, **SHORT)
    assert found.answer == words and len(found.to_pandas()) == 4
    assert found.picture in (found.save(tmp_path / "map") / "map.png").read_bytes()
    assert "Not proved" in repr(found) and "<img" in found._repr_html_()


def test_calls_from_threads_and_inside_a_loop_queue_and_never_mix(root: Path) -> None:
    wanted = {
        (model, sample.id): own_answer(sample, model)
        for model in MODELS
        for sample in ss.samples(root)
    }

    def asked(key: tuple[str, str]) -> str:
        found = ss.compare(key[1], key[0], "What is it?", dataset=root, mode="hooked", **SHORT)
        return str(found.answers.iloc[0, 0])

    with ThreadPoolExecutor(6) as pool:
        assert dict(zip(wanted, pool.map(asked, wanted), strict=True)) == wanted

    async def inside() -> str:
        return asked(("tiny-llava", "id-2"))

    assert asyncio.run(inside()) == wanted["tiny-llava", "id-2"]


def test_an_interrupt_cancels_what_runs_and_what_waits(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Job.ends_within

    def interrupted(job: Job, seconds: float) -> bool:
        if own(job, 0):
            return True
        raise KeyboardInterrupt

    monkeypatch.setattr(Job, "ends_within", interrupted)
    before = {job.id for job in queue.manager().all()}
    with pytest.raises(KeyboardInterrupt):
        ss.compare("id-0", MODELS, dataset=root, repeat=20, max_new_tokens=400, progress=False)
    started = [job for job in queue.manager().all() if job.id not in before]
    assert len(started) == 40 and all(own(job, 60) for job in started)
    assert "cancelled" in {job.state for job in started}


def test_html_is_text_of_the_models_without_scripts(root: Path) -> None:
    found = ss.compare(
        "id-0", MODELS, "<script>alert(1)</script>?", dataset=root, repeat=3, **SHORT
    )
    html = found._repr_html_()
    assert "<svg" in html and "<script" not in html and "Verdict: " in html
    assert all(f">{model}</h3>" in html for model in MODELS)


def test_models_are_listed_with_why_one_cannot_run(root: Path) -> None:
    table = ss.models().set_index("name")
    assert dict(table["reason"]) == dict.fromkeys(table.index, "")
