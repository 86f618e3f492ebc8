"""Runs all checks of all models and samples.

If a model raises, the error becomes its row, and the other models continue.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
    equality,
    extents,
    observer,
    pictures,
    projection,
    sampling,
    stage_times,
    stage_work,
)
from engine.verify.answer_paths import ANOTHER_QUESTION, RecordedAnswer, Subject, rounding
from engine.verify.verdict import (
    CHECKS,
    ONCE,
    CheckFinding,
    Verdict,
    VerifyRequest,
    VerifyWatcher,
)

PAIRS, PAIRS_S = 40, 1.0  # of the observer's cost, per sample


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
        verdict = Verdict.of("answer", name, "", CheckFinding("failed", str(error)))
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
            yield Verdict.of("observer", self.adapter.info.name, "", found)

    def _sample(self, sample: Sample, other: Sample) -> Iterator[Verdict]:
        examination = None
        try:
            with tempfile.TemporaryDirectory(prefix="stagescope-verify-") as folder:
                try:
                    examination = SampleChecks(self, sample, other, Path(folder))
                except BadInput as error:  # after this point it is a fault
                    finding = CheckFinding("skipped", str(error))
                    yield Verdict.of("answer", self.adapter.info.name, sample.id, finding)
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
        return Verdict.of("answer", self.adapter.info.name, sample.id, finding)


def _observed(found: observer.Pairs) -> busy_checks.Attempt:
    return busy_checks.Attempt(observer.observer(found), found.load)


class SampleChecks:
    """All checks of one model on one sample; what several checks need is computed once."""

    def __init__(self, model: _ModelChecks, sample: Sample, other: Sample, folder: Path) -> None:
        self.adapter, self.watcher, self.folder = model.adapter, model.watcher, folder
        self.sample, self.other, self.request = sample, other, model.request
        self.once = model.once
        self.now = ""
        self.pairs = observer.Pairs()
        self.doing("loading and preprocessing the sample")
        cancelled = model.watcher.cancelled
        self.subject = Subject(self.adapter, sample, self.request, folder / "features", cancelled)

    def verdicts(self) -> Iterator[Verdict]:
        """In the order of STEPS; the checks of a model only if they are still to be done."""
        for check, finding in self._findings():
            sample = "" if check in ONCE else self.sample.id
            yield Verdict.of(check, self.adapter.info.name, sample, finding)

    def _findings(self) -> Iterator[tuple[str, CheckFinding]]:
        for check, what, run in STEPS:
            if check in ONCE and not self.once:
                continue
            found = self.refused(check)
            if found is None:
                if what:
                    self.doing(what)
                found = run(self)
            yield check, found
            if check == "encoded_once":
                yield from self._timings()

    def refused(self, check: str) -> CheckFinding | None:
        """The finding of a check about something that the model does not offer, else None."""
        needs, refuses = (
            CHECKS[check].needs,
            {str(n): why for n, why in self.adapter.refuses.items()},
        )
        why = refuses.get("decoupled") if needs in ("decoupled", "prefix") else None
        why = why or refuses.get(needs)
        return CheckFinding("refused", why) if why else None

    def doing(self, what: str) -> None:
        if self.watcher.cancelled():
            raise Cancelled("The verification was cancelled.")
        self.now = what
        self.watcher.doing(self.adapter.info.name, self.sample.id, what)

    @cached_property
    def answers(self) -> dict[str, RecordedAnswer]:
        """The answers of all ways; "computed" is the decoupled way while it fills the cache."""
        found = {}
        for way in self.subject.ways:
            self.doing(f"answering the {way} way")
            found[way] = getattr(self.subject, way)(self.subject.greedy)
            if way == "plain":  # transformers adds its hooks in a model's first call
                self.before = checks.state(self.adapter)
        return found

    @property
    def plain(self) -> RecordedAnswer:
        return self.answers["plain"]

    @cached_property
    def rounding(self) -> float:
        self.doing("measuring rounding noise")
        return rounding(self.adapter, self.subject.prepared, self.plain)

    @cached_property
    def forced(self) -> RecordedAnswer:
        """plain, forced to a long answer."""
        return self.subject.plain(extents.forced(self.subject))

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
        others = [self.answers[way] for way in ways]
        return equality.finding(self.plain, others, self.rounding, self.pieces)[0]

    def text(self, ids: Sequence[int]) -> str:
        """Ids as text: special tokens are removed first, then the tokenizer decodes the rest."""
        tokenizer = self.adapter.tokenizer
        added = tokenizer.added_tokens_decoder.items()
        special = {*tokenizer.all_special_ids, *(one for one, token in added if token.special)}
        kept = [one for one in ids if one not in special]
        return str(tokenizer.decode(kept, skip_special_tokens=False)).strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        pieces: list[str] = self.adapter.tokenizer.convert_ids_to_tokens(list(ids))
        return [str(piece).replace("\u2581", " ").replace("Ġ", " ") for piece in pieces]

    def sampled(self) -> CheckFinding:
        """Open if logits differ by rounding: one random number may then draw different tokens."""
        subject, config = self.subject, self.subject.sampled
        plain = subject.plain(config)
        drawn = ("hooked", "decoupled", "features", "reused")
        others = [getattr(subject, way)(config) for way in drawn if way in subject.ways]
        found, worst = equality.finding(plain, others, self.rounding, self.pieces)
        if worst.result == "EXACT" or not 0 < worst.logit_difference <= self.rounding:
            return found
        sentence = f"{found.sentence} The draws cannot be compared beyond rounding."
        return replace(found, outcome="unresolved", sentence=sentence)

    def _timings(self) -> Iterator[tuple[str, CheckFinding]]:
        """The checks of repeated runs; on a busy machine failed ones are repeated."""
        tries: dict[str, list[busy_checks.Attempt]] = {"clock": [], "accounted": [], "stage3": []}
        while any(map(busy_checks.needs_retry, tries.values())):
            late, rounds = self._late(), self._rounds()
            load = stage_times.load_of(rounds)
            looks = (
                stage_times.clock(rounds, late),
                stage_times.accounted(rounds),
                self.refused("stage3") or stage_times.stage3(rounds),
            )
            for attempts, found in zip(tries.values(), looks, strict=True):
                if busy_checks.needs_retry(attempts):
                    attempts.append(busy_checks.Attempt(found, load))
        for check, some in tries.items():
            yield check, busy_checks.final_finding(some)
        yield "figures", stage_times.figures(rounds)

    def _late(self) -> list[stage_times.Fault]:
        """Faults of token times; a way answers again if its fault may be due to a pause."""
        faults: list[stage_times.Fault] = []
        for way, answer in self.answers.items():
            found = list(stage_times.token_faults(answer))
            if any(not fault.sure for fault in found):
                again: RecordedAnswer = getattr(self.subject, way)(self.subject.greedy)
                found = list(stage_times.token_faults(again))
            faults += found
        return faults

    def _rounds(self) -> list[list[stage_times.TimedRun]]:
        rounds: list[list[stage_times.TimedRun]] = []
        for round_ in stage_times.repeat(self.subject, self.request.runs):
            self.doing(f"timing the stages, round {len(rounds) + 1} of {self.request.runs + 1}")
            rounds.append(round_)
        return rounds

    def settings(self) -> CheckFinding:
        tried = []
        for one in sampling.try_settings(self.subject, self.plain):
            self.doing(f"sampling on flattened logits: {one.name}")
            tried.append(one)
        return sampling.settings(tried, self.rounding, self.adapter.eos_ids, self.text)

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
        found = extents.batch((subject, other), plains, size)
        other.cache.close()
        return extents.equal_batch(found, size, self.adapter, self.rounding, self.pieces)

    def long(self) -> CheckFinding:
        noise = max(self.rounding, rounding(self.adapter, self.subject.prepared, self.forced))
        others = [self.subject.decoupled(extents.forced(self.subject))]
        return extents.long(self.forced, others, noise, self.pieces)

    @cached_property
    def work(self) -> tuple[list[stage_work.WorkLog], stage_work.Contents]:
        return stage_work.runs(self.subject, self.folder / "work")

    def sight(self) -> CheckFinding:
        return projection.sight(self.subject, self._shown_otherwise(), self.rounding)

    def _shown_otherwise(self) -> Prepared | None:
        if self.other is self.sample or self.adapter.kind in self.other.missing:
            return None
        with contextlib.suppress(BadInput):  # its own row reports it
            shown = media.load(self.other, self.adapter.kind, self.request)
            return self.subject.prepare(shown)
        return None

    def left_as_found(self) -> CheckFinding:
        """Before that, the cost of the probe: the pairs of the quietest attempt, repeated while the
        probe seems slow and the machine is busy."""
        found: list[observer.Pairs] = []
        while busy_checks.needs_retry([_observed(one) for one in found]):
            found.append(observer.pairs(self.subject, PAIRS, PAIRS_S))
        self.pairs = min(found, key=lambda one: (one.load.waited or 0.0) if one.load else 0.0)
        self.doing("checking that the model is unchanged")
        again = equality.compare(self.plain, self.subject.plain(self.subject.greedy), self.rounding)
        return checks.left_as_found(self.before, checks.state(self.adapter), again)


# check, what begins ("" if nothing long does), how it is done; the checks of repeated runs follow
# encoded_once, and a model's last check is the observer's
STEPS: tuple[tuple[str, str, Callable[[SampleChecks], CheckFinding]], ...] = (
    ("answer", "", SampleChecks.answer),
    ("pixels", "", lambda c: checks.pixels(c.request.pixels, *c.subject.pixels())),
    ("equal_hooked", "", lambda c: c.equal("hooked")),
    ("equal_decoupled", "", lambda c: c.equal("decoupled", "computed")),
    ("equal_features", "", lambda c: c.equal("features")),
    ("equal_prefix", "", lambda c: checks.prefix(c.equal("reused"), c.answers["reused"])),
    ("equal_sampled", "sampling with one seed", SampleChecks.sampled),
    ("ends", "", lambda c: extents.ends(c.answers, c.adapter.eos_ids)),
    ("greedy", "", lambda c: checks.greedy(c.answers.values())),
    ("counted", "", lambda c: checks.counted(c.answers.values(), c.text)),
    (
        "encoded_once",
        "",
        lambda c: checks.encoded_once(c.answers, len(c.subject.media.images), c.subject.units()),
    ),
    (
        "frames",
        "reading the frames a second time",
        lambda c: pictures.frames(c.adapter, c.sample),
    ),
    ("settings", "", SampleChecks.settings),
    ("equal_batch", "", SampleChecks.batch),
    (
        "shapes",
        "",
        lambda c: pictures.shapes(c.subject, c.folder / "shapes", c.pieces, c.doing),
    ),
    (
        "comparison",
        "forcing a long answer",
        lambda c: checks.comparison(c.forced, c.rounding),
    ),
    ("long", "", SampleChecks.long),
    (
        "rows",
        "computing visual rows in float64",
        lambda c: projection.rows(c.adapter, c.subject.prepared),
    ),
    ("probe", "", lambda c: projection.probe(c.adapter, c.subject.prepared)),
    ("work", "recording what each stage does", lambda c: stage_work.work(*c.work)),
    ("synchronised", "", lambda c: stage_work.synchronised(c.work[0][-1])),
    (
        "keys",
        "changing the ingredients of cache keys",
        lambda c: cache_checks.keys(c.subject, c.folder),
    ),
    (
        "damage",
        "changing a byte in the cache",
        lambda c: cache_checks.damage(c.subject, c.plain),
    ),
    ("sight", "answering with other features", SampleChecks.sight),
    (
        "left_as_found",
        "timing generate() with and without the probe",
        SampleChecks.left_as_found,
    ),
)
