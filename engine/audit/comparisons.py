"""Rules about conclusions: speed-ups, cost ratios, acceptance, equality.

Boundary: each function yields what it found and says nothing otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.audit.finding import Found, name_of
from engine.records import comparing
from engine.records.types import Claim, Figure, ResultFile

CLOSE = 0.02
FEW_PAIRS = 5
_RATIO = re.compile(r"(^|[._])c_ratio$")


def speedups(file: ResultFile) -> Iterator[Found]:
    """A speed-up divides by something else than what it is compared with."""
    yield from _both_models(file)
    yield from _without_draft(file)


def _means(file: ResultFile) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for figure in file.figures:
        values.setdefault(figure.name, []).append(figure.value)
    return {name: sum(found) / len(found) for name, found in values.items()}


def _paths(file: ResultFile, name: str) -> tuple[str, ...]:
    return tuple(figure.path for figure in file.figures if figure.name == name)


def _both_models(file: ResultFile) -> Iterator[Found]:
    """D: (A + B) / B where the question is B alone / B."""
    means = _means(file)
    stated, wall = means.get("parallel.parallel_speedup"), means.get("parallel.wall_clock_total")
    alone = [r.times["total_time"] for r in file.of(file.target) if "total_time" in r.times]
    if not stated or not wall or not alone:
        return
    mean = sum(alone) / len(alone)
    if mean <= 0 or abs(stated / (mean / wall) - 1) <= CLOSE:
        return
    yield Found(
        f"The stated parallel speed-up of {stated:.2f} divides the time of both models one after "
        f"another by the parallel time; against {name_of(file, file.target)} alone it is "
        f"{mean / wall:.3f}.",
        figures={"stated": stated, "against_target_alone": mean / wall},
        correction=f"{mean / wall:.3f}",
        paths=_paths(file, "parallel.parallel_speedup"),
    )


def _without_draft(file: ResultFile) -> Iterator[Found]:
    """F4: the speculative time leaves the draft's own time out."""
    means = _means(file)
    spent, draft = means.get("sd_time_ms"), means.get("egpt_draft_ms")
    parts = [means.get(key) for key in ("vl_prefill_ms", "vl_verify_ms", "vl_decode_ms")]
    alone = means.get("vl_time_ms")
    known = [part for part in parts if part is not None]
    if not spent or not draft or not alone or len(known) < 3:
        return
    if abs(sum(known) / spent - 1) > CLOSE:
        return
    full = spent + draft + means.get("egpt_prefill_ms", 0.0)
    yield Found(
        f"The speculative time of {spent:,.0f} ms leaves the draft's own {full - spent:,.0f} ms "
        f"out; with it the speed-up of {means.get('speedup', alone / spent):.2f} is "
        f"{alone / full:.2f} one after another.",
        figures={"stated_ms": spent, "with_draft_ms": full, "speedup": alone / full},
        correction=f"{alone / full:.2f}",
        paths=_paths(file, "speedup"),
    )


def cost_ratios(file: ResultFile) -> Iterator[Found]:
    """A cost ratio of whole answers stands where the one per token is needed."""
    found = comparing.acceptance(file)
    ratio = found.cost_ratio if found else None
    claims = [claim for claim in file.claims if _RATIO.search(claim.path)]
    claims += [claim for claim in file.claims if claim.path.endswith(".avg_c_ratio")]
    whole = _whole_ratio(file)
    for claim in claims[:1]:
        if whole is None or abs(claim.stated / whole - 1) > 0.1:
            continue
        per_token = "" if ratio is None else f"; per token it is {ratio:.3f}"
        theory = next((c for c in file.claims if c.path.endswith("theoretical_speedup")), None)
        yield Found(
            f"{claim.path} of {claim.stated:.3f} is the ratio of whole answers, and answers differ "
            f"in length{per_token}"
            + (
                f"; the theoretical speed-up of {theory.stated:.3f} rests on it." if theory else "."
            ),
            figures={"stated": claim.stated, **({} if ratio is None else {"per_token": ratio})},
            correction="" if ratio is None else f"{ratio:.3f}",
            paths=_claimed(claim, theory),
        )


def _claimed(*claims: Claim | None) -> tuple[str, ...]:
    return tuple(claim.path for claim in claims if claim)


def _whole_ratio(file: ResultFile) -> float | None:
    """Mean total of the draft over mean total of the target, from the rows."""
    means = []
    for model in (file.draft, file.target):
        keys = [key for key, part in file.group.stages.items() if part == "total"]
        values = [r.times[k] for r in file.of(model) for k in keys if k in r.times]
        if not values or sum(values) <= 0:
            return None
        means.append(sum(values) / len(values))
    return means[0] / means[1]


def estimates(file: ResultFile) -> Iterator[Found]:
    """An acceptance made from words and lengths is no acceptance of tokens."""
    claim = next((c for c in file.claims if c.path.endswith("acceptance_rate_avg")), None)
    parts = [figure for figure in file.figures if _is_overlap(figure)]
    if claim is None or not parts:
        return
    found = comparing.acceptance(file)
    ours = found.rate if found else None
    told = (
        f"; by position {ours.value:.1%} of the ids match"
        if ours
        else "; the file has no token ids to compare"
    )
    yield Found(
        f"The stated acceptance of {claim.stated:.1%} is made of word overlap and text "
        f"similarity, not of tokens{told}.",
        figures={"stated": claim.stated, **({"position_rate": ours.value} if ours else {})},
        paths=(claim.path,),
    )


def _is_overlap(figure: Figure) -> bool:
    return figure.name.rsplit(".", 1)[-1] in ("word_overlap", "char_similarity")


def chance(file: ResultFile) -> Iterator[Found]:
    """True pairs match no more often than pairs of different samples."""
    if file.own or not file.draft:
        return
    found = comparing.acceptance(file)
    if found is None or not found.rate or not found.shuffled or found.says_something is not False:
        return
    low, high = found.shuffled.interval or (found.shuffled.value, found.shuffled.value)
    few = f" ({found.pairs} pairs alone)" if found.pairs < FEW_PAIRS else ""
    yield Found(
        f"{found.rate.value:.1%} of the ids match by position{few}, and "
        f"{found.shuffled.value:.1%} ({low:.1%} to {high:.1%}) where the samples are shuffled: "
        "the match says nothing about the images.",
        figures={
            "position_rate": found.rate.value,
            "shuffled_rate": found.shuffled.value,
            "shuffled_low": low,
            "shuffled_high": high,
        },
        paths=tuple(record.path for record in file.of(file.draft)),
    )


def equality(file: ResultFile) -> Iterator[Found]:
    """Outputs are called equal although they were sampled."""
    if file.own:
        found = [r for r in file.records if "verified" in r.marks
                 and r.sizes.get("temperature", 0) > 0 and "seed" not in r.sizes]  # fmt: skip
        if found:
            yield Found(
                f"{len(found):,} sampled answers without a seed are called verified.",
                found,
                {"temperature": found[0].sizes["temperature"]},
            )
        return
    sampled = [key for key, value in file.config.items() if _samples(key, value)]
    claims = [c for c in file.claims if re.search(r"match_rate|identical|same_output", c.path)]
    if sampled and claims:
        yield Found(
            f"{claims[0].path} compares outputs, but the run sampled (config.{sampled[0]} is "
            f"{file.config[sampled[0]]!r}): equality can neither hold nor fail.",
            figures={"stated": claims[0].stated},
            paths=_claimed(*claims),
        )


def lossless(file: ResultFile) -> Iterator[Found]:
    """Speculative answers that differ from the target's own: greedy ones would not."""
    for model in file.models:
        alone = {"sd": file.target}.get(model, "baseline")
        if file.own or model == alone or alone not in file.models or model == file.draft:
            continue
        if alone != "baseline" and model != "sd":
            continue
        texts = {(r.sample, r.question): (r.ids, r.text) for r in file.of(alone)}
        both = [r for r in file.of(model) if (r.sample, r.question) in texts]
        found = [r for r in both if (r.ids, r.text) != texts[r.sample, r.question]]
        if found:
            yield Found(
                f"{name_of(file, model)}: {len(found):,} of {len(both):,} speculative answers are "
                "not the target's own; greedy speculation would keep every one.",
                found,
                {"different": float(len(found)), "compared": float(len(both))},
                model=model,
            )


def _samples(key: str, value: object) -> bool:
    name = key.rsplit(".", 1)[-1]
    if name == "do_sample":
        return value is True
    return name == "temperature" and isinstance(value, (int, float)) and value > 0
