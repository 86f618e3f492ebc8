"""Runs all checks of all models and samples.  A model's error becomes its row; others continue."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from engine import media
from engine.errors import BadInput, Cancelled, StageScopeError
from engine.machine import device
from engine.machine.load import together
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.types import Prepared, Ran, RunResult, Sample
from engine.verify import checks, pictures, served, stage_times
from engine.verify.answer_paths import ANOTHER_QUESTION, RecordedAnswer, Subject, rounding
from engine.verify.verdict import (
    CHECKS,
    ONCE,
    CheckFinding,
    ModelVerdicts,
    Verdict,
    VerifyRequest,
    VerifyWatcher,
    under_load,
)

PAIRS, PAIRS_S = 40, 0.6  # of the observer's cost


def verify(request: VerifyRequest, watcher: VerifyWatcher) -> list[ModelVerdicts]:
    """Verifies every model of the request on every sample; Cancelled if the watcher asks for it."""
    return [_model(name, request, watcher) for name in request.models]


def _model(name: str, request: VerifyRequest, watcher: VerifyWatcher) -> ModelVerdicts:
    watcher.doing(name, "", "loading the model")
    verdicts: list[Verdict] = []
    try:
        entry = registry.entry(name)
        kind = served.ServerChecks if entry.server else _ModelChecks
        model = kind(entry, request, watcher)
        for verdict in model.verdicts():
            watcher.found(verdict)
            verdicts.append(verdict)
    except Cancelled:
        raise
    except StageScopeError as error:
        verdict = Verdict.of("answer", name, "", CheckFinding("failed", str(error)))
        watcher.found(verdict)
        return ModelVerdicts(name, None, {}, (verdict,))
    return ModelVerdicts(name, model.info, model.environment, tuple(verdicts), model.backend)


class _ModelChecks:
    def __init__(self, entry: ModelEntry, request: VerifyRequest, watcher: VerifyWatcher) -> None:
        self.adapter, self.request, self.watcher = registry.load(entry), request, watcher
        self.info = self.adapter.info
        self.environment = device.environment(self.adapter.device)
        self.pairs = stage_times.Pairs()
        self.backend: Ran = "eager"
        self.once = True  # the checks per model are still to be done

    def verdicts(self) -> Iterator[Verdict]:
        # Letters are scored by one more prefill after a run, which is no part of its answer.
        samples = [replace(sample, choices=()) for sample in self.request.samples]
        for index, sample in enumerate(samples):
            yield from self._sample(sample, samples[(index + 1) % len(samples)])
            self.watcher.give_way()
        if self.pairs.ms:
            cost = under_load(stage_times.observer(self.pairs), self.pairs.load)
            yield Verdict.of("observer", self.info.name, "", cost)

    def _sample(self, sample: Sample, other: Sample) -> Iterator[Verdict]:
        name, now = self.info.name, None
        try:
            with tempfile.TemporaryDirectory(prefix="stagescope-verify-") as folder:
                now = SampleChecks(self, sample, other, Path(folder))
                for check, found in now.findings():
                    yield Verdict.of(check, name, "" if check in ONCE else sample.id, found)
                self.once = False
                self.backend = now.subject.backend
                now.subject.cache.close()
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - any error becomes the model's row
            sentence = str(error)
            if not isinstance(error, StageScopeError):
                sentence = f"{type(error).__name__} while {now.now if now else ''}: {error}"
            unfit = now is None and isinstance(error, BadInput)  # after loading it is a fault
            found = CheckFinding("skipped" if unfit else "failed", sentence)
            yield Verdict.of("answer", name, sample.id, found)


class SampleChecks:
    def __init__(self, model: _ModelChecks, sample: Sample, other: Sample, folder: Path) -> None:
        self.adapter, self.watcher, self.folder = model.adapter, model.watcher, folder
        self.sample, self.other, self.request = sample, other, model.request
        self.model, self.once = model, model.once
        self.now = ""
        self.doing("loading and preprocessing the sample")
        cancelled = model.watcher.cancelled
        self.subject = Subject(self.adapter, sample, self.request, folder / "features", cancelled)

    def findings(self) -> Iterator[tuple[str, CheckFinding]]:
        """In the order of STEPS; the checks of a model only if they are still to be done."""
        for check, run in STEPS.items():
            if check in ONCE and not self.once:
                continue
            yield check, self.refused(check) or run(self)
            if check == "encoded_once" and self.once:
                yield from self._timings()

    def refused(self, check: str) -> CheckFinding | None:
        """The finding of a check about something that the model does not offer, else None."""
        needs = CHECKS[check].needs
        why = {str(way): why for way, why in self.adapter.refuses.items()}.get(needs)
        return CheckFinding("refused", why) if why else None

    def doing(self, what: str) -> None:
        if self.watcher.cancelled():
            raise Cancelled("The verification was cancelled.")
        self.now = what
        self.watcher.doing(self.adapter.info.name, self.sample.id, what)

    @cached_property
    def answers(self) -> dict[str, RecordedAnswer]:
        """The answers of all ways; "computed" is the decoupled way while it fills the cache."""
        answers = {}
        for way in self.subject.ways:
            self.doing(f"answering the {way} way")
            answers[way] = getattr(self.subject, way)(self.subject.greedy)
            if way == "plain":  # transformers adds its hooks in a model's first call
                self.before = checks.state(self.adapter)
        return answers

    @property
    def plain(self) -> RecordedAnswer:
        return self.answers["plain"]

    @cached_property
    def rounding(self) -> float:
        self.doing("measuring rounding noise")
        return rounding(self.adapter, self.subject.prepared, self.plain)

    def answer(self) -> CheckFinding:
        plain, subject = self.plain, self.subject
        sentence = f"It answers in {len(plain.ids)} new tokens."
        if self.request.backend == "compiled" and subject.backend == "eager":
            sentence += " The decode step could not be compiled, so the eager one is verified."
        evidence = {
            "text": self.adapter.text(plain.ids),
            "shown": subject.media.shown,
            "backend": subject.backend,
            "new_tokens": len(plain.ids),
            "positions": plain.context + len(plain.ids),
            "pictures": len(subject.media.images),
        }
        sentence = " ".join([sentence, *subject.notes])
        return CheckFinding("passed", sentence, len(plain.ids), None, "new tokens", evidence)

    def equal(self, *ways: str) -> CheckFinding:
        pairs = [(self.plain, self.answers[way]) for way in ways]
        return checks.finding(pairs, self.rounding, self.adapter.pieces)

    def _timings(self) -> Iterator[tuple[str, CheckFinding]]:
        late = [fault for one in self.answers.values() for fault in stage_times.token_faults(one)]
        rounds: list[dict[str, RunResult]] = []
        for round_ in stage_times.repeat(self.subject, self.request.runs):
            self.doing(f"timing the stages, round {len(rounds) + 1} of {self.request.runs + 1}")
            rounds.append(round_)
        loads = [result.machine_load for round_ in rounds for result in round_.values()]
        known = [load for load in loads if load is not None]
        load = together(known) if len(known) == len(loads) else None
        yield "clock", under_load(stage_times.clock(rounds, late), load)
        yield "accounted", under_load(stage_times.accounted(rounds), load)
        yield "stage3", self.refused("stage3") or under_load(stage_times.stage3(rounds), load)

    def batch(self) -> CheckFinding:
        """Answers the subject's question and another question about another sample, in turn."""
        size, subject = self.request.batch, self.subject
        if size < 2:
            return CheckFinding("unresolved", "No batch was requested, so batches are not covered.")
        self.doing(f"answering a batch of {size}")
        sample = self.sample if self.adapter.kind in self.other.missing else self.other
        given = (replace(self.request, prompt=ANOTHER_QUESTION), self.folder / "other")
        try:
            other = Subject(self.adapter, sample, *given, subject.cancelled)
        except BadInput:  # the sample's own row reports it
            other = Subject(self.adapter, subject.sample, *given, subject.cancelled)
        plains = (self.plain, other.plain(other.greedy))
        finding = checks.batch((subject, other), plains, size, self.rounding)
        other.cache.close()
        return finding

    def long(self) -> CheckFinding:
        self.doing("forcing a long answer")
        subject, noise = self.subject, self.rounding
        length = min(checks.LONG, self.adapter.context_limit - subject.prepared.context_tokens)
        config = replace(subject.greedy, max_new_tokens=length, min_new_tokens=length)
        forced = subject.plain(config)
        noise = max(noise, rounding(self.adapter, subject.prepared, forced))
        return checks.long((forced, subject.decoupled(config)), noise, self.adapter.pieces)

    def rows(self) -> CheckFinding:
        self.doing("computing visual rows in float64")
        return pictures.rows(self.adapter, self.subject.prepared)

    def sight(self) -> CheckFinding:
        self.doing("answering with other features")
        other: Prepared | None = None
        if self.other is not self.sample and self.adapter.kind not in self.other.missing:
            with contextlib.suppress(BadInput):  # its own row reports it
                shown = media.load(self.other, self.adapter.kind, self.request)
                other = self.adapter.preprocess(shown, self.request.prompt)
        return pictures.sight(self.subject, other, self.rounding)

    def left_as_found(self) -> CheckFinding:
        """Before that, the cost of the probe."""
        if self.once:
            self.doing("timing generate() with and without the probe")
            self.model.pairs = stage_times.pairs(self.subject, PAIRS, PAIRS_S)
        self.doing("checking that the model is unchanged")
        again = checks.compare(self.plain, self.subject.plain(self.subject.greedy), self.rounding)
        return checks.left_as_found(self.before, checks.state(self.adapter), again)


# The checks of repeated runs follow encoded_once, and a model's last check is the observer's.
STEPS: dict[str, Callable[[SampleChecks], CheckFinding]] = {
    "answer": SampleChecks.answer,
    "pixels": lambda c: pictures.pixels(c.subject),
    "equal_hooked": lambda c: c.equal("hooked"),
    "equal_decoupled": lambda c: c.equal("decoupled", "computed"),
    "equal_features": lambda c: c.equal("features"),
    "ends": lambda c: checks.ends(c.answers, c.adapter.eos_ids),
    "greedy": lambda c: checks.greedy(c.answers.values()),
    "counted": lambda c: checks.counted(c.answers.values(), c.subject.text),
    "encoded_once": lambda c: checks.encoded_once(c.answers, c.subject),
    "sampled": lambda c: checks.sampled(c.subject, c.plain, c.rounding, c.doing),
    "equal_batch": SampleChecks.batch,
    "shapes": lambda c: pictures.shapes(c.subject, c.folder / "shapes", c.doing),
    "long": SampleChecks.long,
    "rows": SampleChecks.rows,
    "probe": lambda c: pictures.probe(c.adapter, c.subject.prepared),
    "sight": SampleChecks.sight,
    "left_as_found": SampleChecks.left_as_found,
}
