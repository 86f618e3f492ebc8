"""The measurement on an accelerator, made small: its parts, its driver, and what becomes of it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import table
from benchmarks.accelerator import __main__ as driver
from benchmarks.accelerator import app_path, merged, parts, prepare
from benchmarks.accelerator.parts import OUT, Part
from engine import timing
from engine.__main__ import _parser
from engine.machine import device
from engine.media import dataset
from engine.models import registry
from engine.pipeline import feature_cache
from tests import tiny

CUDA = torch.device("cuda")
MODULES = {
    "well": "import json, sys; json.dump({'n': 1}, open(sys.argv[1], 'w'))",
    "loud": "print('[1, 2]')",
    "broken": "import sys; sys.exit('no such thing')",
    "checked": "import sys; print('{}'); sys.exit(1)",
    "garbled": "print('{', end='')",
    "endless": "import subprocess, sys, time; print('begun', flush=True);"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); time.sleep(60)",
}


# the driver


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "modules"
    folder.mkdir()
    for name, code in MODULES.items():
        (folder / f"made_{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return tmp_path


def part(module: str, *more: str, minutes: float = 1.0, **fields: Any) -> Part:
    return Part(module, "a part", (f"made_{module}", *more), minutes, **fields)


def test_other_parts_run_after_one_that_fails_or_hangs(modules: Path) -> None:
    wanted = [
        part("well", OUT),
        part("broken", OUT),
        part("endless", OUT, minutes=0.05),
        part("garbled", "--json"),
        part("checked", "--json", codes=(0, 1)),
        part("loud", "--json"),
        Part("lost", "figures that were not written", ("made_checked", OUT), 1, codes=(0, 1)),
        Part("lacks", "a part", ("made_well", OUT), 1, needs=("no_such_package",)),
    ]
    start = time.monotonic()
    states = driver._run(wanted, modules, minutes=5)
    assert time.monotonic() - start < 50  # the part that hangs, and its child, were ended
    assert {name: one["state"] for name, one in states.items()} == {
        "well": "measured",
        "broken": "failed",
        "endless": "out of time",
        "garbled": "failed",
        "checked": "measured, with failures",
        "loud": "measured",
        "lost": "failed",
        "lacks": "not measured",
    }
    assert "no such thing" in states["broken"]["said"] and states["endless"]["said"] == "begun"
    assert states["lacks"]["said"] == "no_such_package not installed"
    assert json.loads((modules / "well.json").read_text()) == {"n": 1}
    assert not (modules / "broken.json").exists() and not (modules / "garbled.json").exists()
    again = driver._run(wanted[:2], modules, minutes=5)
    assert again["well"]["said"] == "earlier" and again["broken"]["state"] == "failed"


def test_every_part_is_a_command_that_exists(tmp_path: Path) -> None:
    """The flags of the product's commands are read by its own parser."""
    options = driver._options(["--out", str(tmp_path), "--layers", "2"])
    known = {"benchmarks.full_size", "benchmarks.accelerator.prepare"}
    known |= {"benchmarks.accelerator.app_path"}
    for one in parts.parts(options):
        module, *words = one.command
        if module == "engine":
            _parser(words).parse_args(words)
        else:
            assert module in known
    names = [one.name for one in parts.parts(options)]
    assert len(names) == len(set(names)) and names.index("prepare") < names.index("app")


# the parts


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small checkpoints in the published form, and two scenes."""
    folder = tmp_path_factory.mktemp("work")
    prepare.checkpoints(folder, torch.device("cpu"), 1, 64)
    prepare.scenes(folder / prepare.SCENES, range(300_000, 300_002))
    return folder


@pytest.fixture
def setup(work: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[app_path.Setup]:
    monkeypatch.setenv("STAGESCOPE_MODELS", str(work / prepare.MODELS))
    samples = dataset.read(work / prepare.SCENES).samples
    yield app_path.Setup(torch.device("cpu"), samples, 4, 2, 10**9)
    tiny.unload_all()
    feature_cache.shared().close()


@pytest.mark.slow
def test_the_models_load_answer_and_read_their_features(setup: app_path.Setup) -> None:
    found = app_path._sections(setup, ["together", "features"])
    assert not [one for one in found.values() if "failed" in one]
    assert found["together"]["all_at_once"] is True
    for name in app_path.ALL:
        loaded = found["together"]["models"][name]
        assert loaded["weights_bytes"] == pytest.approx(loaded["weights_planned"], rel=0.01)
        assert len(loaded["tokens"]) == 4 and loaded["run_peak"] is None
        kept = found["features"][name]
        assert kept["equal"] and kept["read_from_cache"] and kept["feature_bytes"] > 0
    assert list(merged._unequal(found)) == []


@pytest.fixture
def card(setup: app_path.Setup, monkeypatch: pytest.MonkeyPatch) -> app_path.Setup:
    """A card of CUDA as far as sizes go: tensors are on the CPU, and weights are counted."""
    for name in ("_used", "_peak", "_reserved_peak"):
        monkeypatch.setattr(app_path, name, lambda on: sum(registry.resident_bytes().values()))
    monkeypatch.setattr(app_path, "forget_peak", lambda on: None)
    return app_path.Setup(CUDA, setup.samples, setup.tokens, setup.repeat, 0)


@pytest.mark.slow
def test_on_a_small_card_each_model_makes_room_and_answers_the_same(
    card: app_path.Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = [registry.needed(registry.entry(name)) for name in app_path.ALL]
    limit = int(max(one.total for one in needs) + min(one.weights for one in needs) / 2)

    def memories() -> tuple[device.Memory, ...]:
        used = sum(registry.resident_bytes().values())
        return (device.Memory("cpu", "a small card", limit, limit - used),)

    @contextmanager
    def limited(on: torch.device, size: int) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(device, "memories", memories)
            yield

    monkeypatch.setattr(app_path, "_limited", limited)
    found = app_path.one_after_another(card)
    resident = [one["resident"] for one in found["models"].values()]
    assert resident == [[name] for name in app_path.ALL]  # the first is asked again at the end
    assert all(one["equal"] for one in found["models"].values())


@pytest.mark.slow
def test_a_clock_that_does_not_wait_is_noticed(
    card: app_path.Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device's events are the truth; here the clock is what the planted fault makes of it."""
    plain = timing.synchronizer

    def ratios(*_: Any) -> list[float]:
        return [1.01, 1.02] if timing.synchronizer is plain else [0.04, 0.05]

    monkeypatch.setattr(app_path, "_clock_ratios", ratios)
    assert app_path.clock(card)["planted_fault_noticed"] is True
    assert timing.synchronizer is plain
    monkeypatch.setattr(app_path, "_clock_ratios", lambda *_: [1.01, 1.02])  # it changes nothing
    assert app_path.clock(card)["planted_fault_noticed"] is False


# what becomes of the figures


def spread(median: float) -> dict[str, float]:
    return {"median": median, "min": median, "max": median, "n": 5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the parts of a device leave behind, by hand."""
    ways = {
        way: {
            "ran": way,
            "tokens_per_s": spread(rate),
            "ratio": spread(rate / 30),
            "mbu": {"of_copy": rate / 200},
        }
        for way, rate in {"generate": 30.0, "eager": 66.0, "compiled": 140.0}.items()
    }
    family = {
        "dtype": "bfloat16",
        "context_tokens": 640,
        "new_tokens": 64,
        "ttft_ms": spread(90.0),
        "tpot_ms": spread(15.0),
        "compile_s": {"seconds": 70.0, "failure": ""},
        "peak_memory": {"bytes": 15 * 10**9},
        "ways": ways,
    }
    files = {
        "decoding-eventgpt": {
            "device": "ACME X1 80GB",
            "environment": {"torch": "2.13", "transformers": "5"},
            "full_size": True,
            "copy_gb_per_s": 2900.0,
            "families": {"eventgpt": family},
        },
        "app": {"sections": {"features": {"eventgpt-7b": {
            "computed_ms": spread(20.0), "read_ms": spread(2.0), "equal": False}}}},
        "verify-eventgpt-7b": {
            "models": [{"name": "eventgpt-7b", "verified": True}],
            "verdicts": [
                {"model": "eventgpt-7b", "outcome": outcome, "check": check, "title": check,
                 "sentence": "It is so."}
                for outcome, check in (("passed", "pixels"), ("unresolved", "stage3"))
            ],
        },
        "parts": {"app": {"state": "measured"}},
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def test_figures_become_rows_and_differences_are_named(folder: Path) -> None:
    found = merged.merged(folder)
    lines = {row["what"]: row for row in found["rows"]}
    compiled = lines["EventGPT-7b: 64 tokens, compiled"]
    assert compiled["target"] == 4.0 and compiled["ratio"] == pytest.approx(140 / 30)
    assert lines["EventGPT-7b: eager, tokens a second, 33 % of a copy's bandwidth"]["median"] == 66
    assert lines["eventgpt-7b: stage 3, read"]["median"] == 2.0
    assert found["unequal"] == ["app.features.eventgpt-7b.equal"]
    assert found["verify"]["verify-eventgpt-7b"] == {"passed": 1, "unresolved": 1}


def test_kept_figures_have_a_section(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    monkeypatch.setattr("benchmarks.machine.RESULTS", results)
    assert "No accelerator has been measured" in table.everything(results)
    merged.write(folder)
    assert merged.keep(folder).name == "accelerator-acme-x1-80gb.json"
    text = table.everything(results)
    assert "`python -m benchmarks.accelerator`" in text and "ACME X1 80GB" in text
    assert "| EventGPT-7b: peak memory | 15 GB |" in text and "No accelerator" not in text
