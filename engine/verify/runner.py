"""Runs all checks of all models and samples.

Boundary: runs the checks in order; each check is in its own module.  If a model raises, the error
becomes its row, and the other models continue.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine import media
from engine.errors import BadInput, Cancelled, StageScopeError, UnknownModel
from engine.models import registry
from engine.models.adapter import Adapter
from engine.types import ModelInfo, Prepared, Ran, Sample, pixels_of
from engine.verify import (
    busy_checks,
    cache_checks,
    checks,
    cleanup,
    clock_agreement,
    equality,
    extents,
    input_effect,
    model_checks,
    observer,
    recomputed,
    stage_times,
)
from engine.verify import frame_choice as shown
from engine.verify.answer_paths import RecordedAnswer, Subject, rounding
from engine.verify.verdict import ONCE, CheckFinding, Verdict, VerifyRequest, VerifyWatcher

EQUAL = {  # check -> ways that must equal plain
    "equal_hooked": ("hooked",),
    "equal_decoupled": ("decoupled", "computed"),
    "equal_features": ("features",),
    "equal_prefix": ("reused",),
}
PAIRS, PAIRS_S = 40, 1.0  # of the observer's cost, per sample
TIMINGS = ("clock", "accounted", "stage3")


@dataclass(frozen=True)
class ModelVerdicts:
    """One model (None if it did not load) and all its verdicts."""

    name: str
    info: ModelInfo | None
    environment: dict[str, str]
    verdicts: tuple[Verdict, ...]
    known: bool = True
    backend: Ran = "eager"  # of the decoupled way
    pixels: str = ""


def verify(request: VerifyRequest, watcher: VerifyWatcher) -> list[ModelVerdicts]:
    """Verifies every model of the request on every sample; Cancelled if the watcher asks for it."""
    return [_model(name, request, watcher) for name in request.models]


def _model(name: str, request: VerifyRequest, watcher: VerifyWatcher) -> ModelVerdicts:
    from engine.machine import device

    watcher.doing(name, "", "loading the model")
    try:
        adapter = registry.load(registry.entry(name))
    except StageScopeError as error:
        verdict = Verdict("answer", name, "", CheckFinding("failed", str(error)))
        watcher.found(verdict)
        return ModelVerdicts(name, None, {}, (verdict,), not isinstance(error, UnknownModel))
    verdicts: list[Verdict] = []
    request = replace(request, pixels=pixels_of(name) or request.pixels)
    model = _ModelChecks(adapter, request, watcher)
    for verdict in model.verdicts():
        watcher.found(verdict)
        verdicts.append(verdict)
    environment = device.environment(adapter.device)
    found = (adapter.info, environment, tuple(verdicts))
    return ModelVerdicts(name, *found, backend=model.backend, pixels=request.pixels)


class _ModelChecks:
    """One loaded model and all samples."""

    def __init__(self, adapter: Adapter, request: VerifyRequest, watcher: VerifyWatcher) -> None:
        self.adapter, self.request, self.watcher = adapter, request, watcher
        self.pairs = observer.Pairs()
        self.backend: Ran = "eager"
        self.once = True  # the checks per model are still to be done

    def verdicts(self) -> Iterator[Verdict]:
        # Letters are scored by one more prefill after a run, which is no part of its answer.
        samples = [replace(sample, choices=()) for sample in self.request.samples]
        for index, sample in enumerate(samples):
            other = samples[(index + 1) % len(samples)]
            yield from self._sample(sample, other)
            self.watcher.give_way()
        if self.pairs.ms:
            found = busy_checks.final_finding([_observed(self.pairs)])
            yield Verdict("observer", self.adapter.info.name, "", found)

    def _sample(self, sample: Sample, other: Sample) -> Iterator[Verdict]:
        examination = None
        try:
            with tempfile.TemporaryDirectory(prefix="stagescope-verify-") as folder:
                try:
                    examination = _SampleChecks(self, sample, other, Path(folder))
                except BadInput as error:  # after this point it is a fault
                    finding = CheckFinding("skipped", str(error))
                    yield Verdict("answer", self.adapter.info.name, sample.id, finding)
                    return
                yield from examination.verdicts()
                self.pairs += examination.pairs
                self.once = False
                self.backend = examination.subject.backend
                examination.subject.cache.close()
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - any error becomes the model's row
            yield self._raised(sample, examination.now if examination else "", error)

    def _raised(self, sample: Sample, now: str, error: Exception) -> Verdict:
        sentence = str(error)
        if not isinstance(error, StageScopeError):
            sentence = f"{type(error).__name__} while {now}: {error}"
        finding = CheckFinding("failed", sentence)
        return Verdict("answer", self.adapter.info.name, sample.id, finding)


def _observed(found: observer.Pairs) -> busy_checks.Attempt:
    return busy_checks.Attempt(observer.observer(found), found.load)


class _SampleChecks:
    """All checks of one model on one sample."""

    def __init__(self, model: _ModelChecks, sample: Sample, other: Sample, folder: Path) -> None:
        self.adapter, self.watcher, self.folder = model.adapter, model.watcher, folder
        self.sample, self.other, self.request = sample, other, model.request
        self.once = model.once
        self.now = ""
        self.before: cleanup.ModelState
        self.plain: RecordedAnswer
        self.rounding = 0.0
        self.pairs = observer.Pairs()
        self._doing("loading and preprocessing the sample")
        cancelled = model.watcher.cancelled
        self.subject = Subject(self.adapter, sample, self.request, folder / "features", cancelled)

    def verdicts(self) -> Iterator[Verdict]:
        for check, finding in self._findings():
            sample = "" if check in ONCE else self.sample.id
            yield Verdict(check, self.adapter.info.name, sample, finding)

    def _findings(self) -> Iterator[tuple[str, CheckFinding]]:
        """(check, finding) pairs of the sample; once per model also those of the model."""
        subject, pictures = self.subject, len(self.subject.media.images)
        answers = self._answers()
        plain = self.plain = answers["plain"]
        self._doing("measuring rounding noise")
        self.rounding = rounding(self.adapter, subject.prepared, plain)
        yield "answer", self._answer(plain)
        yield "pixels", checks.pixels(self.request.pixels, *subject.pixels())
        for check, ways in EQUAL.items():
            yield check, self.refused(check) or self._equal(check, [answers[way] for way in ways])
        yield "equal_sampled", self._sampled()
        yield "ends", extents.ends(answers, self.adapter.eos_ids)
        yield "greedy", checks.greedy(answers.values())
        yield "counted", checks.counted(answers.values(), self._text)
        yield "encoded_once", checks.encoded_once(answers, pictures, subject.units())
        yield from self._timings(answers)
        self._doing("reading the frames a second time")
        yield "frames", shown.frames(self.adapter, self.sample)
        if self.once:
            yield from self._once(plain)
        yield from self._of_features(plain)
        self._doing("timing generate() with and without the probe")
        self.pairs = self._pairs()
        yield "left_as_found", self._left_as_found(plain)

    def refused(self, check: str) -> CheckFinding | None:
        """The finding of a check about something that the model does not offer, else None."""
        return model_checks.refused(self.adapter, check)

    def _equal(self, check: str, others: Sequence[RecordedAnswer]) -> CheckFinding:
        found, _ = equality.finding(self.plain, others, self.rounding, self._pieces)
        return checks.prefix(found, others[0]) if check == "equal_prefix" else found

    def _of_features(self, plain: RecordedAnswer) -> Iterator[tuple[str, CheckFinding]]:
        """The checks of the cache, and whether the features reach the answer."""
        for check in ("keys", "damage", "sight"):
            if (refused := self.refused(check)) is not None:
                yield check, refused
                continue
            if check == "keys":
                self._doing("changing the ingredients of cache keys")
                yield check, cache_checks.keys(self.subject, self.folder)
            elif check == "damage":
                self._doing("changing a byte in the cache")
                yield check, cache_checks.damage(self.subject, plain)
            else:
                self._doing("answering with other features")
                yield (
                    check,
                    input_effect.sight(self.subject, self._shown_otherwise(), self.rounding),
                )

    def _once(self, plain: RecordedAnswer) -> Iterator[tuple[str, CheckFinding]]:
        """The checks that are done once per model."""
        sample = self.sample if self.adapter.kind in self.other.missing else self.other
        reading = model_checks.CheckContext(self.rounding, self._pieces, self._text, self._doing)
        yield from model_checks.findings(self.subject, sample, plain, reading, self.folder)

    def _doing(self, what: str) -> None:
        if self.watcher.cancelled():
            raise Cancelled("The verification was cancelled.")
        self.now = what
        self.watcher.doing(self.adapter.info.name, self.sample.id, what)

    def _answers(self) -> dict[str, RecordedAnswer]:
        """The answers of all ways; "computed" is the decoupled way while it fills the cache."""
        found = {}
        for way in self.subject.ways:
            self._doing(f"answering the {way} way")
            found[way] = getattr(self.subject, way)(self.subject.greedy)
            if way == "plain":  # transformers adds its hooks in a model's first call
                self.before = cleanup.state(self.adapter)
        return found

    def _answer(self, plain: RecordedAnswer) -> CheckFinding:
        shown = {"text": self.adapter.text(plain.ids), "shown": self.subject.media.shown}
        shown["backend"] = self.subject.backend
        reached = {"new_tokens": len(plain.ids), "positions": plain.context + len(plain.ids)}
        pictures = {"pictures": len(self.subject.media.images)}
        sentence = f"It answers in {len(plain.ids)} new tokens."
        if self.request.backend == "compiled" and self.subject.backend == "eager":
            sentence += " The decode step could not be compiled, so the eager one is verified."
        sentence = " ".join([sentence, *self.subject.notes])
        evidence = shown | reached | pictures
        return CheckFinding("passed", sentence, len(plain.ids), None, "new tokens", evidence)

    def _text(self, ids: Sequence[int]) -> str:
        """Ids as text: special tokens are removed first, then the tokenizer decodes the rest."""
        tokenizer = self.adapter.tokenizer
        added = tokenizer.added_tokens_decoder.items()
        special = {*tokenizer.all_special_ids, *(one for one, token in added if token.special)}
        kept = [one for one in ids if one not in special]
        return str(tokenizer.decode(kept, skip_special_tokens=False)).strip()

    def _pieces(self, ids: Sequence[int]) -> list[str]:
        pieces: list[str] = self.adapter.tokenizer.convert_ids_to_tokens(list(ids))
        return [str(piece).replace("\u2581", " ").replace("Ġ", " ") for piece in pieces]

    def _sampled(self) -> CheckFinding:
        """Open if logits differ by rounding: one random number may then draw different tokens."""
        self._doing("sampling with one seed")
        subject, config = self.subject, self.subject.sampled
        plain = subject.plain(config)
        drawn = ("hooked", "decoupled", "features", "reused")
        others = [getattr(subject, way)(config) for way in drawn if way in subject.ways]
        found, worst = equality.finding(plain, others, self.rounding, self._pieces)
        if worst.result == "EXACT" or not 0 < worst.logit_difference <= self.rounding:
            return found
        sentence = f"{found.sentence} The draws cannot be compared beyond rounding."
        return replace(found, outcome="unresolved", sentence=sentence)

    def _timings(self, answers: Mapping[str, RecordedAnswer]) -> Iterator[tuple[str, CheckFinding]]:
        """The checks of repeated runs; on a busy machine failed ones are repeated."""
        tries: dict[str, list[busy_checks.Attempt]] = {check: [] for check in TIMINGS}
        while any(map(busy_checks.needs_retry, tries.values())):
            late, rounds = self._late(answers), self._rounds()
            load = stage_times.load_of(rounds)
            looks = (
                stage_times.clock(rounds, late),
                stage_times.accounted(rounds),
                self.refused("stage3") or stage_times.stage3(rounds),
            )
            for check, found in zip(TIMINGS, looks, strict=True):
                if busy_checks.needs_retry(tries[check]):
                    tries[check].append(busy_checks.Attempt(found, load))
        for check, some in tries.items():
            yield check, busy_checks.final_finding(some)
        yield "figures", recomputed.figures(rounds)

    def _late(self, answers: Mapping[str, RecordedAnswer]) -> list[clock_agreement.Fault]:
        """Faults of token times; a way answers again if its fault may be due to a pause."""
        faults: list[clock_agreement.Fault] = []
        for way, answer in answers.items():
            found = list(clock_agreement.token_faults(answer))
            if any(not fault.sure for fault in found):
                again: RecordedAnswer = getattr(self.subject, way)(self.subject.greedy)
                found = list(clock_agreement.token_faults(again))
            faults += found
        return faults

    def _pairs(self) -> observer.Pairs:
        """The pairs of the quietest attempt; repeated while the probe seems slow and the machine is
        busy."""
        found: list[observer.Pairs] = []
        while busy_checks.needs_retry([_observed(one) for one in found]):
            found.append(observer.pairs(self.subject, PAIRS, PAIRS_S))
        return min(found, key=lambda one: (one.load.waited or 0.0) if one.load else 0.0)

    def _rounds(self) -> list[list[stage_times.TimedRun]]:
        rounds: list[list[stage_times.TimedRun]] = []
        for round_ in stage_times.repeat(self.subject, self.request.runs):
            self._doing(f"timing the stages, round {len(rounds) + 1} of {self.request.runs + 1}")
            rounds.append(round_)
        return rounds

    def _shown_otherwise(self) -> Prepared | None:
        if self.other is self.sample or self.adapter.kind in self.other.missing:
            return None
        with contextlib.suppress(BadInput):  # its own row reports it
            shown = media.load(self.other, self.adapter.kind, self.request)
            return self.subject.prepare(shown)
        return None

    def _left_as_found(self, plain: RecordedAnswer) -> CheckFinding:
        self._doing("checking that the model is unchanged")
        again = equality.compare(plain, self.subject.plain(self.subject.greedy), self.rounding)
        return checks.left_as_found(self.before, cleanup.state(self.adapter), again)
