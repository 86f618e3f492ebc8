"""One tiny model verified on one sample, quickly."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.models import registry
from engine.types import Sample
from engine.verify import runner
from engine.verify.verdict import Verdict, VerifyRequest
from tests import tiny

FAMILIES = ("eventgpt", "video_llava", "llava")


@dataclass
class Notes:
    """A watcher that writes down what it hears."""

    verdicts: list[Verdict] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    stop_at: str = "never"

    def doing(self, model: str, sample: str, what: str) -> None:
        self.steps.append(what)

    def found(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)

    def cancelled(self) -> bool:
        return any(self.stop_at in step for step in self.steps)

    def give_way(self) -> float:
        self.steps.append("gave way")
        return 0.0


Verify = Callable[..., dict[str, Verdict]]


@pytest.fixture
def verify(
    tiny_models: Path, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Verify]:
    """check -> verdict of one tiny model; `checks`: these alone.  What a test has done to the
    model goes with it."""
    monkeypatch.setattr(runner, "PAIRS", 3)

    def verified(
        family: str, runs: int = 1, checks: frozenset[str] = frozenset()
    ) -> dict[str, Verdict]:
        if family not in FAMILIES:
            _add(family, tmp_path, monkeypatch)
        if checks:
            only(monkeypatch, *checks)
        request = VerifyRequest((f"tiny-{family}",), (sample,), max_new_tokens=8, runs=runs)
        (examined,) = runner.verify(request, Notes())
        return {verdict.check: verdict for verdict in examined.verdicts}

    yield verified
    for entry in registry.resident():
        registry.unload(entry)


def steps_for(wanted: frozenset[str]) -> dict[str, Any]:
    """The steps that judge these checks; all for a fault that ends or outlasts a step."""
    if wanted & {"answer", "left_as_found"}:
        return runner.STEPS
    more = {"encoded_once"} if wanted & {"clock", "accounted", "stage3"} else set()
    more |= {"left_as_found"} if "observer" in wanted else set()
    return {name: step for name, step in runner.STEPS.items() if name in wanted | more}


def only(monkeypatch: pytest.MonkeyPatch, *checks: str) -> None:
    monkeypatch.setattr(runner, "STEPS", steps_for(frozenset(checks)))


def _add(family: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A models.toml with one small model of transformers."""
    path = folder / "families.toml"
    tiny.add_family(path, family)
    monkeypatch.setenv("STAGESCOPE_MODELS", str(path))
