"""Rules about ratios of times: speed-ups, cost ratios, answers of different length.

Boundary: each rule yields its findings, or nothing.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator

from engine.published.audit.finding import CheckResult, name_of
from engine.published.read import answer_pairs, lengths, plausible_units
from engine.published.read.record_types import AnswerRecord, Claim, ResultFile
from engine.published.read.stated_figures import statistic_of

CLOSE = 0.02
UNEQUAL = 0.1
_RATIO = re.compile(r"(^|[._])c_ratio$")


def speedups(file: ResultFile) -> Iterator[CheckResult]:
    """A speed-up divides by the wrong time."""
    yield from _both_models(file)
    yield from _without_draft(file)


def _means(file: ResultFile, *names: str) -> dict[str, float]:
    """Means of figures over the rows that have all of them; {} if no row has."""
    rows: dict[str, dict[str, float]] = {}
    for figure in file.figures:
        if figure.name in names:
            rows.setdefault(figure.path.removesuffix(figure.name), {})[figure.name] = figure.value
    whole = [row for row in rows.values() if len(row) == len(names)]
    return {name: statistics.fmean(row[name] for row in whole) for name in names if whole}


def _paths(file: ResultFile, name: str) -> tuple[str, ...]:
    return tuple(figure.path for figure in file.figures if figure.name == name)


def _both_models(file: ResultFile) -> Iterator[CheckResult]:
    """Group D: the speed-up is against both models one after the other, not the target alone."""
    rows = _stated_speedups(file)
    if not rows:
        return
    stated, wall, mean, both = (
        statistics.fmean(row[column] for row in rows) for column in range(4)
    )
    if min(stated, wall, mean) <= 0 or abs(stated / (mean / wall) - 1) <= CLOSE:
        return
    problem = "does not follow from the rows"
    if abs(stated / (both / wall) - 1) <= CLOSE:
        problem = "divides the time of both models in sequence by the parallel time"
    quote, figures = _quoted(file, "parallel_speedup", stated)
    yield CheckResult(
        f"The {quote} {problem}. Against {name_of(file, file.target)} alone it is "
        f"{mean / wall:.3f}.",
        figures={**figures, "against_target_alone": mean / wall},
        correction=f"{mean / wall:.3f}",
        paths=_paths(file, "parallel.parallel_speedup"),
    )


def _quoted(file: ResultFile, key: str, mean: float) -> tuple[str, dict[str, float]]:
    """A speed-up in words and as a figure: the summary's, otherwise the mean of the rows."""
    name = key.replace("_speedup", " speed-up").replace("speedup", "speed-up")
    claim = next((claim for claim in file.claims if _is_mean_of(claim, key)), None)
    if claim is not None:
        return f"stated {name} of {claim.stated:.2f}", {"stated": claim.stated}
    return f"{name} of the rows, {mean:.2f} on average,", {"mean_of_rows": mean}


def _is_mean_of(claim: Claim, key: str) -> bool:
    return statistic_of(claim.path.rsplit(".", 1)[-1]) == (key, "mean")


def _stated_speedups(file: ResultFile) -> list[tuple[float, float, float, float]]:
    """(speed-up, parallel time, target total, sum of both totals) of each row that has all four."""
    figures = {figure.path: figure.value for figure in file.figures}
    drafts = {_row(record): record.times.get("total_time") for record in file.of(file.draft)}
    found = []
    for record in file.of(file.target):
        place, start = _row(record), f"{_row(record)}.parallel"
        keys = f"{start}.parallel_speedup", f"{start}.wall_clock_total"
        alone, first = record.times.get("total_time"), drafts.get(place)
        if all(key in figures for key in keys) and alone is not None and first is not None:
            found.append((figures[keys[0]], figures[keys[1]], alone, alone + first))
    return found


def _row(record: AnswerRecord) -> str:
    return record.path.rpartition(".")[0]


def _without_draft(file: ResultFile) -> Iterator[CheckResult]:
    """Token pairs with speculation: the speculative time does not include the draft's own time."""
    parts = ("vl_prefill_ms", "vl_verify_ms", "vl_decode_ms")
    means = _means(file, "sd_time_ms", "egpt_draft_ms", "egpt_prefill_ms", "vl_time_ms", *parts)
    means = means or _means(file, "sd_time_ms", "egpt_draft_ms", "vl_time_ms", *parts)
    if not means or min(means[key] for key in ("sd_time_ms", "egpt_draft_ms", "vl_time_ms")) <= 0:
        return
    spent, alone = means["sd_time_ms"], means["vl_time_ms"]
    if abs(sum(means[part] for part in parts) / spent - 1) > CLOSE:
        return
    if plausible_units.is_doubtful(file):
        return
    full = spent + means["egpt_draft_ms"] + _warm_prefill(file, means.get("egpt_prefill_ms", 0.0))
    quote, figures = _quoted(file, "speedup", _mean_of(file, "speedup", alone / spent))
    yield CheckResult(
        f"The speculative time, {spent:,.0f} ms on average, does not include the "
        f"draft's own {full - spent:,.0f} ms. With it the sequential speed-up is "
        f"{alone / full:.2f}, not the {quote.removesuffix(',')}.",
        figures={**figures, "mean_ms": spent, "with_draft_ms": full, "speedup": alone / full},
        correction=f"{alone / full:.2f}",
        paths=_paths(file, "speedup"),
    )


def _mean_of(file: ResultFile, name: str, other: float) -> float:
    """The mean of a figure over the rows; `other` if no row has it."""
    values = [figure.value for figure in file.figures if figure.name == name]
    return statistics.fmean(values) if values else other


def _warm_prefill(file: ResultFile, recorded: float) -> float:
    """The draft's corrected mean prefill in ms, without a warm-up."""
    cold = any("cold:prefill_ms" in record.marks for record in file.of(file.draft, corrected=True))
    values = [record.times["prefill_ms"] for record in file.of(file.draft, corrected=True)
              if "prefill_ms" in record.times]  # fmt: skip
    return statistics.fmean(values) if cold and recorded else recorded


def cost_ratios(file: ResultFile) -> Iterator[CheckResult]:
    """A cost ratio is that of whole answers instead of per token."""
    found = answer_pairs.acceptance(file)
    ratio = found.cost_ratio if found else None
    if ratio is None and (work := lengths.work(file)):
        ratio = 1 / work.per_token  # over the pairs that have both times
    claims = [claim for claim in file.claims if _RATIO.search(claim.path)]
    claims += [claim for claim in file.claims if claim.path.endswith(".avg_c_ratio")]
    whole = _whole_ratio(file)
    for claim in claims[:1]:
        if whole is None or not _is_whole(claim.stated, whole, ratio):
            continue
        per_token = "unknown" if ratio is None else f"{ratio:.3f}"
        theory = next((c for c in file.claims if c.path.endswith("theoretical_speedup")), None)
        yield CheckResult(
            f"{claim.path} of {claim.stated:.3f} is the ratio of whole answers of any length; per "
            f"token it is {per_token}"
            + (
                f"; the theoretical speed-up of {theory.stated:.3f} is based on it."
                if theory
                else "."
            ),
            figures={"stated": claim.stated, **({} if ratio is None else {"per_token": ratio})},
            correction="" if ratio is None else f"{ratio:.3f}",
            paths=_claimed(claim, theory),
        )


def _is_whole(stated: float, whole: float, per_token: float | None) -> bool:
    """Whether a cost ratio is closer to that of whole answers than to the one per token."""
    if stated <= 0 or abs(stated / whole - 1) > 0.1:
        return False
    if not per_token:
        return abs(stated / whole - 1) <= CLOSE
    apart = abs(whole / per_token - 1) > CLOSE
    return apart and abs(math.log(stated / whole)) < abs(math.log(stated / per_token))


def _claimed(*claims: Claim | None) -> tuple[str, ...]:
    return tuple(claim.path for claim in claims if claim)


def _whole_ratio(file: ResultFile) -> float | None:
    """The draft's mean total divided by the target's mean total, over the rows."""
    means = []
    for model in (file.draft, file.target):
        keys = [key for key, part in file.group.stages.items() if part == "total"]
        values = [r.times[k] for r in file.of(model) for k in keys if k in r.times]
        if not values or sum(values) <= 0:
            return None
        means.append(sum(values) / len(values))
    return means[0] / means[1]


def unequal(file: ResultFile) -> Iterator[CheckResult]:
    """The compared models give answers of different length."""
    work = None if file.own or plausible_units.is_doubtful(file) else lengths.work(file)
    if work is None or abs(work.tokens - 1) <= UNEQUAL:
        return
    doing = "Answering" if work.part == "total" else "Decoding"
    slow, fast = (name_of(file, model) for model in (file.target, file.draft))
    cuts = [(model, cut) for model in (file.draft, file.target)
            if (cut := lengths.cut(file, model))]  # fmt: skip
    cut_text = "".join(
        f"; {name_of(file, model)} is limited to {cut.tokens:,} tokens"
        + (f" ({cut.named})" if cut.named else "")
        for model, cut in cuts
    )
    yield CheckResult(
        f"{doing} takes {slow} {work.ratio:.2f} times as long as {fast}: {work.tokens:.2f} times "
        f"the tokens and {work.per_token:.2f} times the time per token{cut_text}.",
        [*file.of(file.draft), *file.of(file.target)],
        {
            "ratio": work.ratio,
            "tokens_ratio": work.tokens,
            "per_token_ratio": work.per_token,
            **{f"cut_{model}": float(cut.tokens) for model, cut in cuts},
        },
    )
