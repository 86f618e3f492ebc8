"""Three published claims about EventGPT beside the evidence of imported files.

The claims come from the benchmark's design documents: about 3.3x faster overall, 1.9x in decoding,
8x in loading, each against the other model.  A ratio is the other model's time divided by
EventGPT's: the ratio of means, and the median over clips (each clip counts once, by the median of
its samples) with its exact interval.  evidence.py says why a file has no evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from engine.analysis.acceptance import amount
from engine.analysis.statistics import MIN_CLUSTERS, Interval, median_interval
from engine.published.claims.evidence import (
    CLAIM_TIMES,
    Without,
    confounds,
    doubted,
    doubts,
    impossible,
    of_means,
    pairs,
    ratio_of_means,
    without,
)
from engine.published.read.record_types import ResultFile
from engine.published.read.who_answered import disputed, shown, speaks_of_eventgpt

HELD = 0.1  # a ratio within 10 % of the claim supports it
ClaimOutcome = Literal["supported", "not supported", "cannot be judged"]
CLAIMS = (
    ("overall", "EventGPT is about 3.3x faster overall", 3.3),
    ("decoding", "EventGPT is 1.9x faster in decoding", 1.9),
    ("loading", "EventGPT's media load 8x faster", 8.0),
)


@dataclass(frozen=True)
class Evidence:
    """One file's evidence for a claim.

    samples: the pairs of answers, 0 if the file has means only; clips: how many clips they are of.
    recorded, corrected: the ratio of the means.  paired: the median over clips with its interval,
    None for fewer than MIN_CLUSTERS clips.  notes: what makes the ratio hard to interpret.
    doubted: its units are implausible, so the verdict does not count it.
    """

    file: str
    other: str
    samples: int
    recorded: float | None
    corrected: float | None
    paired: Interval | None
    notes: tuple[str, ...] = ()
    clips: int = 0
    doubted: bool = False

    def ratio(self, corrected: bool) -> float | None:
        """The recorded ratio if nothing could be corrected."""
        return self.corrected if corrected and self.corrected is not None else self.recorded

    @property
    def amount(self) -> str:
        """The number of samples and clips, in words."""
        return amount(self.samples, self.clips) if self.samples else "means"


@dataclass(frozen=True)
class Headline:
    """A claim, the claimed factor, the files' evidence and a verdict in one sentence.

    outcome: supported or not if all files agree that do not leave their units in doubt; otherwise
    it cannot be judged.  without: the files without evidence, by reason.
    """

    name: str
    claim: str
    stated: float
    evidence: tuple[Evidence, ...]
    verdict: str
    without: tuple[Without, ...] = ()
    outcome: ClaimOutcome = "cannot be judged"

    @property
    def judged(self) -> str:
        return f"{self.outcome.capitalize()}: {self.claim}."

    @property
    def line(self) -> str:
        """The outcome, the claim and the figures, in one line."""
        return f"{self.judged} {self.verdict}"

    def as_dict(self) -> dict[str, Any]:
        """As `import --json` prints it, without intervals."""
        evidence = [asdict(one) for one in self.evidence]
        for one in evidence:
            del one["paired"]
        return asdict(self) | {"evidence": evidence}


def headlines(
    files: Iterable[ResultFile], corrected: bool = True, intervals: bool = True
) -> tuple[Headline, ...]:
    """The three claims with their evidence and verdicts.

    intervals=False leaves `paired` None.
    """
    every = tuple(files)
    return tuple(_headline(*claim, every, corrected, intervals) for claim in CLAIMS)


def _headline(
    name: str,
    claim: str,
    stated: float,
    files: Sequence[ResultFile],
    corrected: bool,
    intervals: bool,
) -> Headline:
    every = [(file, _evidence(file, name, corrected, intervals)) for file in files]
    found = tuple(one for _, one in every if one is not None)
    absent = without([file for file, one in every if one is None], name)
    ratios = [one.ratio(corrected) or 0.0 for one in found if not one.doubted]
    verdict = _verdict(stated, ratios, len(found))
    held = {_held(ratio, stated) for ratio in ratios}
    outcome: ClaimOutcome = "cannot be judged"
    if len(held) == 1:
        outcome = "supported" if True in held else "not supported"
    return Headline(name, claim, stated, found, verdict, absent, outcome)


def _evidence(file: ResultFile, name: str, corrected: bool, intervals: bool) -> Evidence | None:
    if file.status != "ok":
        return None
    if not file.draft:
        return _of_means(file) if name == "decoding" else None
    if not speaks_of_eventgpt(file):
        return None
    claim_time = CLAIM_TIMES[name]
    recorded = ratio_of_means(file, claim_time, corrected=False)
    both = pairs(file, claim_time, corrected)
    if recorded is None or not both:
        return None
    ratios = [slow / fast for _, slow, fast in both]
    clips = [clip for clip, _, _ in both]
    enough = intervals and len(set(clips)) >= MIN_CLUSTERS
    doubt = doubts(file, recorded)
    other = file.identities[file.target]
    return Evidence(
        file=file.name,
        other=shown(other, corrected) + disputed(other, corrected),
        samples=len(both),
        recorded=recorded,
        corrected=ratio_of_means(file, claim_time, corrected=True),
        paired=median_interval(ratios, clips, ratios=True) if enough else None,
        notes=(*doubt, *confounds(file, name, corrected)),
        clips=len(set(clips)),
        doubted=bool(doubt),
    )


def _of_means(file: ResultFile) -> Evidence | None:
    """Evidence of a file (group wall_clock) that has means of decoding but no rows of EventGPT."""
    stated = {claim.path: claim.stated for claim in file.claims}
    slow, fast = (stated.get(f"stage_timing.{m}.decode_ms") for m in ("videollava", "eventgpt"))
    tokens = [stated.get(f"stage_timing.{m}.avg_tokens") for m in ("videollava", "eventgpt")]
    if not slow or not fast or slow < 0 or fast < 0:
        return None
    notes = of_means(file, tokens, slow / fast)
    doubt = impossible(file) or doubted(slow / fast)
    return Evidence(
        file.name, "Video-LLaVA", 0, slow / fast, None, None, (*doubt, *notes), doubted=bool(doubt)
    )


def _held(ratio: float, stated: float) -> bool:
    return abs(ratio / stated - 1) <= HELD


def _verdict(stated: float, ratios: Sequence[float], files: int) -> str:
    doubted = files - len(ratios)
    left = f" {doubted} more not counted: units in doubt." if doubted else ""
    if not ratios:
        return f"No imported file has both times, so there is no evidence.{left}"
    held = sum(_held(ratio, stated) for ratio in ratios)
    span = (
        f"{min(ratios):.2f}x" if len(ratios) == 1 else f"{min(ratios):.2f}x to {max(ratios):.2f}x"
    )
    where = "1 file gives" if len(ratios) == 1 else f"{len(ratios)} files give"
    return f"{where} {span}; {held} of {len(ratios)} within 10 % of {stated:g}x.{left}"
