"""All checks of all models and samples, one after another.

Boundary: orders the checks; how each looks is its module's.  A model that
fails costs only itself: whatever it raises becomes its row.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from engine import media
from engine.errors import BadInput, Cancelled, StageScopeError, UnknownModel
from engine.models import registry
from engine.models.base import Adapter
from engine.types import ModelInfo, Prepared, Ran, Sample
from engine.verify import (
    checks,
    controls,
    equality,
    extents,
    figures,
    keys,
    loaded,
    moments,
    observer,
    projection,
    sampling,
    shown,
    sight,
    stages,
    traces,
    work,
)
from engine.verify.verdict import ONCE, Finding, Verdict, VerifyRequest
from engine.verify.ways import ANOTHER_QUESTION, Answer, Subject, rounding

EQUAL = {  # check -> the ways that must be equal to plain
    "equal_hooked": ("hooked",),
    "equal_decoupled": ("decoupled", "computed"),
    "equal_features": ("features",),
    "equal_prefix": ("reused",),
}
PAIRS, PAIRS_S = 40, 1.0  # of the observer's cost, per sample
TIMINGS = ("clock", "accounted", "stage3")


class Watcher(Protocol):
    """Who looks at a verification while it goes on."""

    def doing(self, model: str, sample: str, what: str) -> None: ...
    def found(self, verdict: Verdict) -> None: ...
    def cancelled(self) -> bool: ...
    def give_way(self) -> float: ...


@dataclass(frozen=True)
class Examined:
    """One model's part: who it was (None if it did not load) and all its verdicts."""

    name: str
    info: ModelInfo | None
    environment: dict[str, str]
    verdicts: tuple[Verdict, ...]
    known: bool = True
    backend: Ran = "eager"  # what decoded the decoupled way


def verify(request: VerifyRequest, watcher: Watcher) -> list[Examined]:
    """Every model of the request on every sample; Cancelled when the watcher says so."""
    return [_model(name, request, watcher) for name in request.models]


def _model(name: str, request: VerifyRequest, watcher: Watcher) -> Examined:
    from engine import device

    watcher.doing(name, "", "loading the model")
    try:
        adapter = registry.load(registry.entry(name))
    except StageScopeError as error:
        verdict = Verdict("answer", name, "", Finding("failed", str(error)))
        watcher.found(verdict)
        return Examined(name, None, {}, (verdict,), not isinstance(error, UnknownModel))
    verdicts: list[Verdict] = []
    model = _Model(adapter, request, watcher)
    for verdict in model.verdicts():
        watcher.found(verdict)
        verdicts.append(verdict)
    environment = device.environment(adapter.device)
    return Examined(name, adapter.info, environment, tuple(verdicts), backend=model.backend)


class _Model:
    """One loaded model and all samples."""

    def __init__(self, adapter: Adapter, request: VerifyRequest, watcher: Watcher) -> None:
        self.adapter, self.request, self.watcher = adapter, request, watcher
        self.pairs = observer.Pairs()
        self.backend: Ran = "eager"
        self.once = True  # what is checked once has yet to be

    def verdicts(self) -> Iterator[Verdict]:
        samples = self.request.samples
        for index, sample in enumerate(samples):
            other = samples[(index + 1) % len(samples)]
            yield from self._sample(sample, other)
            self.watcher.give_way()
        if self.pairs.ms:
            found = loaded.settled([_observed(self.pairs)])
            yield Verdict("observer", self.adapter.info.name, "", found)

    def _sample(self, sample: Sample, other: Sample) -> Iterator[Verdict]:
        examination = None
        try:
            with tempfile.TemporaryDirectory(prefix="stagescope-verify-") as folder:
                try:
                    examination = _Examination(self, sample, other, Path(folder))
                except BadInput as error:  # later it would be a fault
                    finding = Finding("skipped", str(error))
                    yield Verdict("answer", self.adapter.info.name, sample.id, finding)
                    return
                yield from examination.verdicts()
                self.pairs += examination.pairs
                self.once = False
                self.backend = examination.subject.backend
                examination.subject.cache.close()
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a model raises is its row
            yield self._raised(sample, examination.now if examination else "", error)

    def _raised(self, sample: Sample, now: str, error: Exception) -> Verdict:
        sentence = str(error)
        if not isinstance(error, StageScopeError):
            sentence = f"{type(error).__name__} while {now}: {error}"
        finding = Finding("failed", sentence)
        return Verdict("answer", self.adapter.info.name, sample.id, finding)


def _observed(found: observer.Pairs) -> loaded.Try:
    return loaded.Try(observer.observer(found.ms, found.net_ms), found.load)


class _Examination:
    """One model and one sample, from the first answer to the last look."""

    def __init__(self, model: _Model, sample: Sample, other: Sample, folder: Path) -> None:
        self.adapter, self.watcher, self.folder = model.adapter, model.watcher, folder
        self.sample, self.other, self.request = sample, other, model.request
        self.once = model.once
        self.now = ""
        self.before: traces.State
        self.rounding = 0.0
        self.pairs = observer.Pairs()
        self._doing("loading and preprocessing the sample")
        cancelled = model.watcher.cancelled
        self.subject = Subject(self.adapter, sample, self.request, folder / "features", cancelled)

    def verdicts(self) -> Iterator[Verdict]:
        for check, finding in self._findings():
            sample = "" if check in ONCE else self.sample.id
            yield Verdict(check, self.adapter.info.name, sample, finding)

    def _findings(self) -> Iterator[tuple[str, Finding]]:
        """check, finding: each sample's own, and once what is about the model as a whole."""
        subject, pictures = self.subject, len(self.subject.media.images)
        answers = self._answers()
        plain = answers["plain"]
        self._doing("measuring the noise of rounding")
        self.rounding = rounding(self.adapter, plain)
        yield "answer", self._answer(plain)
        yield "pixels", checks.pixels(self.request.pixels, *subject.pixels())
        for check, ways in EQUAL.items():
            found = self._equal(plain, [answers[way] for way in ways])
            reused = check == "equal_prefix"
            yield check, checks.prefix(found, answers["reused"]) if reused else found
        yield "equal_sampled", self._sampled()
        yield "ends", extents.ends(answers, self.adapter.eos_ids)
        yield "greedy", checks.greedy(answers.values())
        yield "counted", checks.counted(answers.values(), self._text)
        yield "encoded_once", checks.encoded_once(answers, pictures)
        yield from self._timings(answers)
        self._doing("reading the frames a second time")
        yield "frames", shown.frames(self.adapter, self.sample)
        if self.once:
            yield from self._once(plain)
        self._doing("changing what cache keys depend on")
        yield "keys", checks.keys(list(keys.changes(subject, self.folder)))
        self._doing("changing a byte of the cache")
        yield "damage", checks.damage(keys.damage(subject), plain)
        yield "sight", self._sight()
        self._doing("timing generate() with and without the probe")
        self.pairs = self._pairs()
        yield "left_as_found", self._left_as_found(plain)

    def _once(self, plain: Answer) -> Iterator[tuple[str, Finding]]:
        """What is about the model as a whole, whatever the number of samples."""
        adapter, subject = self.adapter, self.subject
        yield "settings", self._settings(plain)
        yield "equal_batch", self._batch(plain)
        self._doing("forcing a long answer")
        config = extents.forced(subject)
        forced = subject.plain(config)
        others = [subject.decoupled(config)]
        noise = max(self.rounding, rounding(adapter, forced))
        yield "long", extents.long(forced, others, noise, self._pieces)
        yield "comparison", controls.comparison(forced, self.rounding)
        self._doing("computing visual rows in float64")
        yield "rows", projection.rows(adapter, subject.prepared)
        yield "probe", projection.probe(adapter, subject.prepared)
        self._doing("watching what each stage does")
        logs, contents = work.runs(subject, self.folder / "work")
        yield "work", work.work(logs, contents)
        yield "synchronised", work.synchronised(logs[-1])

    def _settings(self, plain: Answer) -> Finding:
        tried = []
        for one in sampling.tried(self.subject, plain):
            self._doing(f"sampling on flattened logits: {one.name}")
            tried.append(one)
        return sampling.settings(tried, self.rounding, self.adapter.eos_ids, self._text)

    def _batch(self, plain: Answer) -> Finding:
        """This sample, and another question about another one, in turn."""
        size = self.request.batch
        if size < 2:
            return Finding("unresolved", "No batch was asked for: batches are not covered.")
        self._doing(f"answering a batch of {size}")
        request = replace(self.request, prompt=ANOTHER_QUESTION)
        cancelled, folder = self.watcher.cancelled, self.folder / "other"
        sample = self.sample if self.adapter.kind in self.other.missing else self.other
        try:
            other = Subject(self.adapter, sample, request, folder, cancelled)
        except BadInput:  # its own row says so
            other = Subject(self.adapter, self.sample, request, folder, cancelled)
        plains = (plain, other.plain(other.greedy))
        found = extents.batch((self.subject, other), plains, size)
        other.cache.close()
        return extents.equal_batch(found, size, self.adapter, self.rounding, self._pieces)

    def _doing(self, what: str) -> None:
        if self.watcher.cancelled():
            raise Cancelled("The verification was cancelled.")
        self.now = what
        self.watcher.doing(self.adapter.info.name, self.sample.id, what)

    def _answers(self) -> dict[str, Answer]:
        """All ways; "computed" is the decoupled way while it fills the cache."""
        found = {}
        for way in ("plain", "hooked", "computed", "decoupled", "features", "reused"):
            self._doing(f"answering the {way} way")
            found[way] = getattr(self.subject, way)(self.subject.greedy)
            if way == "plain":  # transformers puts hooks of its own on a model at its first call
                self.before = traces.state(self.adapter)
        return found

    def _answer(self, plain: Answer) -> Finding:
        shown = {"text": self.adapter.text(plain.ids), "shown": self.subject.media.shown}
        shown["backend"] = self.subject.backend
        reached = {"new_tokens": len(plain.ids), "positions": plain.context + len(plain.ids)}
        pictures = {"pictures": len(self.subject.media.images)}
        sentence = f"It answers in {len(plain.ids)} new tokens."
        if self.request.backend == "compiled" and self.subject.backend == "eager":
            sentence += " The decode step could not be compiled: the eager one is verified."
        evidence = shown | reached | pictures
        return Finding("passed", sentence, len(plain.ids), None, "new tokens", evidence)

    def _text(self, ids: Sequence[int]) -> str:
        """Ids as text: special tokens are left out first, then the tokenizer decodes the rest."""
        tokenizer = self.adapter.tokenizer
        added = tokenizer.added_tokens_decoder.items()
        special = {*tokenizer.all_special_ids, *(one for one, token in added if token.special)}
        kept = [one for one in ids if one not in special]
        return str(tokenizer.decode(kept, skip_special_tokens=False)).strip()

    def _equal(self, plain: Answer, others: Sequence[Answer]) -> Finding:
        return equality.finding(plain, others, self.rounding, self._pieces)[0]

    def _pieces(self, ids: Sequence[int]) -> list[str]:
        pieces: list[str] = self.adapter.tokenizer.convert_ids_to_tokens(list(ids))
        return [str(piece).replace("\u2581", " ").replace("Ġ", " ") for piece in pieces]

    def _sampled(self) -> Finding:
        """Where logits differ by rounding, one random number may draw two tokens: left open."""
        self._doing("sampling with one seed")
        subject, config = self.subject, self.subject.sampled
        plain = subject.plain(config)
        ways = (subject.hooked, subject.decoupled, subject.features, subject.reused)
        others = [way(config) for way in ways]
        found, worst = equality.finding(plain, others, self.rounding, self._pieces)
        if worst.result == "EXACT" or not 0 < worst.logit_difference <= self.rounding:
            return found
        sentence = f"{found.sentence} The draws cannot be compared beyond rounding."
        return replace(found, outcome="unresolved", sentence=sentence)

    def _timings(self, answers: Mapping[str, Answer]) -> Iterator[tuple[str, Finding]]:
        """The checks of repeated runs; on a busy machine those that fail are looked at again."""
        tries: dict[str, list[loaded.Try]] = {check: [] for check in TIMINGS}
        while any(map(loaded.again, tries.values())):
            late, rounds = self._late(answers), self._rounds()
            load = stages.load_of(rounds)
            looks = (stages.clock(rounds, late), stages.accounted(rounds), stages.stage3(rounds))
            for check, found in zip(TIMINGS, looks, strict=True):
                if loaded.again(tries[check]):
                    tries[check].append(loaded.Try(found, load))
        for check, some in tries.items():
            yield check, loaded.settled(some)
        yield "figures", figures.figures(rounds)

    def _late(self, answers: Mapping[str, Answer]) -> list[moments.Fault]:
        """Faults of token times; a way whose fault may be a pause answers once more."""
        faults: list[moments.Fault] = []
        for way, answer in answers.items():
            found = list(moments.token_faults(answer))
            if any(not fault.sure for fault in found):
                again: Answer = getattr(self.subject, way)(self.subject.greedy)
                found = list(moments.token_faults(again))
            faults += found
        return faults

    def _pairs(self) -> observer.Pairs:
        """Timed again while they say that the probe is slow and the machine is busy; the pairs of
        the quietest time."""
        found: list[observer.Pairs] = []
        while loaded.again([_observed(one) for one in found]):
            found.append(observer.pairs(self.subject, PAIRS, PAIRS_S))
        return min(found, key=lambda one: (one.load.waited or 0.0) if one.load else 0.0)

    def _rounds(self) -> list[list[stages.Timed]]:
        rounds: list[list[stages.Timed]] = []
        for round_ in stages.repeat(self.subject, self.request.runs):
            self._doing(f"timing the stages, round {len(rounds) + 1} of {self.request.runs + 1}")
            rounds.append(round_)
        return rounds

    def _sight(self) -> Finding:
        self._doing("showing it something else")
        other = self._shown_otherwise()
        blinks, own = sight.blinks(self.adapter, self.subject.prepared, other, self.subject.greedy)
        texts = [vars(blink) | {"text": self.adapter.text(blink.ids)} for blink in blinks]
        found = checks.sight(blinks, own, self.rounding)
        return replace(found, evidence={"own": self.adapter.text(own), "changes": texts})

    def _shown_otherwise(self) -> Prepared | None:
        if self.other is self.sample or self.adapter.kind in self.other.missing:
            return None
        with contextlib.suppress(BadInput):  # its own row says so
            kind, extent = self.adapter.kind, self.request.extent
            return self.subject.prepare(media.load(self.other, kind, "arange", extent))
        return None

    def _left_as_found(self, plain: Answer) -> Finding:
        self._doing("looking whether anything was left behind")
        again = equality.compare(plain, self.subject.plain(self.subject.greedy), self.rounding)
        return checks.left_as_found(self.before, traces.state(self.adapter), again)
