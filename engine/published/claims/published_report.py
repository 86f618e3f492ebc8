"""A report of imported result files for a stranger: what was claimed, what the files show, what
cannot be known.

Boundary: from ResultFiles and findings to headings, sentences and tables (forms.py makes
Markdown or HTML of them).  Writes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.analysis.acceptance import Acceptance, Range, amount
from engine.published.audit import Finding, audit
from engine.published.claims import document_forms
from engine.published.claims.confounds import PER_TOKEN
from engine.published.claims.denominators import both_denominators
from engine.published.claims.document_forms import Block
from engine.published.claims.headlines import Headline, headlines
from engine.published.claims.unknowns import unknowns
from engine.published.claims.waterfall import Waterfall, waterfall
from engine.published.read import answer_pairs, file_summary
from engine.published.read.record_types import ResultFile, milliseconds

TITLE = "What published result files show"


def markdown(files: Sequence[ResultFile]) -> str:
    """The report as GitHub's Markdown."""
    return document_forms.markdown(blocks(files))


def page(files: Sequence[ResultFile]) -> str:
    """The report as one HTML page that loads nothing from anywhere."""
    return document_forms.page(blocks(files), TITLE)


def blocks(files: Sequence[ResultFile]) -> list[Block]:
    """The report's parts in their order."""
    audited = [(file, audit(file)) for file in files]
    used = [(file, found) for file, found in audited if file.status == "ok"]
    return [
        Block("h1", ((TITLE,),)),
        _paragraph(_opening(audited)),
        Block("h2", (("What was claimed",),)),
        *_claims(headlines(files)),
        Block("h2", (("What the files show",),)),
        *_overview(audited),
        *_falls([file for file, _ in used]),
        *_acceptances([file for file, _ in used]),
        *_denominators(used),
        *_unchecked([file for file, _ in used]),
        Block("h2", (("What cannot be known",),)),
        *_list(unknowns(audited) or ("Nothing: there is no result.",)),
        Block("h2", (("File by file",),)),
        *(block for file, found in audited for block in _file(file, found)),
    ]


def _paragraph(text: str) -> Block:
    return Block("p", ((text,),))


def _list(sentences: Sequence[str]) -> list[Block]:
    return [Block("list", tuple((one,) for one in sentences))] if sentences else []


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[Block]:
    return [Block("table", (head, *rows))] if rows else []


def _opening(audited: Sequence[tuple[ResultFile, tuple[Finding, ...]]]) -> str:
    counts = {status: sum(f.status == status for f, _ in audited)
              for status in ("ok", "failed", "unknown")}  # fmt: skip
    errors = sum(finding.severity == "error" for _, found in audited for finding in found)
    return (
        f"{len(audited)} files: {counts['ok']} with results, {counts['failed']} of runs that "
        f"failed altogether, {counts['unknown']} of another kind. The rules found {errors} false "
        "figures or labels in them. Each table says whether its values are as recorded or "
        "corrected; times are milliseconds. Of a warm-up only the stage that shows it is "
        "corrected: it counts as the mean of the others, in the total too."
    )


def _claims(found: Sequence[Headline]) -> list[Block]:
    made: list[Block] = [_paragraph(PER_TOKEN)]
    for headline in found:
        made.append(Block("h3", ((headline.claim,),)))
        made.append(_paragraph(headline.verdict))
        rows = [
            (
                one.file,
                one.other,
                one.amount,
                _times(one.recorded),
                _times(one.corrected),
                _span(one.paired.median, one.paired.low, one.paired.high) if one.paired else "-",
                "; ".join(one.notes) or "-",
            )
            for one in headline.evidence
        ]
        head = ("file", "against", "n", "recorded", "corrected", "median over clips (95 %)",
                "to know")  # fmt: skip
        made += _table(head, rows)
        if headline.without:
            made.append(_paragraph("Files that say nothing about it, and why:"))
            made += _list([f"{one.reason}: {', '.join(one.files)}" for one in headline.without])
    return made


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _span(value: float, low: float, high: float) -> str:
    return f"{value:.2f}x ({low:.2f} to {high:.2f})"


def _speedup(found: Range | None) -> str:
    if found is None:
        return "-"
    return _span(found.value, *found.interval) if found.interval else _times(found.value)


def _overview(audited: Sequence[tuple[ResultFile, tuple[Finding, ...]]]) -> list[Block]:
    rows = [
        (
            file.name,
            str(file.group),
            amount(file.samples, file.clips),
            str(len(file.failures)),
            " / ".join(str(sum(one.severity == level for one in found))
                       for level in ("error", "warning", "note")),
        )
        for file, found in audited
    ]  # fmt: skip
    return _table(("file", "group", "n", "failed", "errors / warnings / notes"), rows)


def _falls(files: Sequence[ResultFile]) -> list[Block]:
    falls = [fall for file in files if (fall := waterfall(file))]
    if not falls:
        return []
    rows = [
        (
            f.file,
            f"{f.slow} {f.slow_ms:,.1f}",
            f"{f.fast} {f.fast_ms:,.1f}",
            f.nonsense or _parts(f),
        )
        for f in falls
    ]
    short = [file.name for file in files if not file.group.total_is_whole_run]
    lacking = [fall.file for fall in falls if fall.file in short]
    return [
        Block("h3", (("What a difference is made of",),)),
        _paragraph(
            "Milliseconds that EventGPT saves per sample in each part (negative: loses), corrected "
            "values. Answers of different length are not equal work: fewer tokens is what it does "
            "not say, time per token what it says faster. A stage that one model has not apart "
            "is compared together with the one that holds it, or marked as timed for one model "
            "alone; unaccounted is the total less the stages."
        ),
        *_table(("file", "from", "to", "parts"), rows),
        *_definitions(falls),
        *([_paragraph(f"Totals without loading: {', '.join(lacking)}.")] if lacking else []),
    ]


def _parts(fall: Waterfall) -> str:
    return ", ".join(f"{part.name} {part.ms:+,.1f}" for part in fall.parts)


def _definitions(falls: Sequence[Waterfall]) -> list[Block]:
    """What a time per token is, of which files."""
    files: dict[str, list[str]] = {}
    for fall in falls:
        if fall.per_token_ratio is not None:
            files.setdefault(fall.definition, []).append(fall.file)
    return [_paragraph(f"Time per token {how}: {', '.join(names)}.")
            for how, names in files.items()]  # fmt: skip


def _acceptances(files: Sequence[ResultFile]) -> list[Block]:
    rows = []
    for file in files:
        told = {one.ours: one for one in answer_pairs.stated(file)}
        for name, found in answer_pairs.variants(file).items():
            mine = told.get(found.rate.value if found.rate else None)
            shown = "" if name == "main" else f" ({name.replace('_', ' ')})"
            rows.append((f"{file.name}{shown}", *_acceptance(found, mine.stated if mine else None)))
    if not rows:
        return []
    head = ("file", "pairs", "stated", "position match (95 %)", "shuffled (95 %)", "mean prefix",
            f"W{found.gamma}", "cost ratio", "ceiling", "predicted speed-up (95 %)")  # fmt: skip
    return [
        Block("h3", (("Would EventGPT's answers do as drafts?",),)),
        _paragraph(
            "Position match is the share of ids that agree in their places; shuffled is the same "
            "share over drafts and targets of different clips: what is not above its range says "
            "nothing about the image. Intervals are over whole clips "
            "(jackknife, six clips or more). "
            "W is the share of the first drafted ids that would be accepted; the cost ratio is per "
            "token, over all N tokens of the answers; the ceiling is the speed-up if all were "
            "accepted. Under 1x is slower."
        ),
        *_table(head, rows),
    ]


def _denominators(used: Sequence[tuple[ResultFile, tuple[Finding, ...]]]) -> list[Block]:
    """Where a finding and the table give one count as two shares."""
    told = [(file.name, both_denominators(file, found)) for file, found in used]
    return [_paragraph(f"{name}: {sentence}") for name, sentence in told if sentence]


def _unchecked(files: Sequence[ResultFile]) -> list[Block]:
    """Rates of acceptance that rest on the file's word alone."""
    rows = [
        (file.name, one.path, f"{one.stated:.1%}")
        for file in files
        for one in answer_pairs.stated(file)
        if one.ours is None
    ]
    if not rows:
        return []
    return [
        _paragraph("Rates that files state and keep no token ids for: they cannot be checked."),
        *_table(("file", "in the file at", "stated"), rows),
    ]


def _acceptance(found: Acceptance, stated: float | None) -> tuple[str, ...]:
    return (
        found.amount,
        "-" if stated is None else f"{stated:.1%}",
        _percent(found.rate),
        _percent(found.shuffled),
        f"{found.mean_prefix:.2f}",
        f"{found.first_window:.3f}",
        "-" if found.cost_ratio is None else f"{found.cost_ratio:.3f}",
        _times(found.ceiling),
        _speedup(found.speedup),
    )


def _percent(found: Range | None) -> str:
    if found is None:
        return "-"
    ends = found.interval
    return f"{found.value:.1%} ({ends[0]:.1%} to {ends[1]:.1%})" if ends else f"{found.value:.1%}"


def _file(file: ResultFile, findings: Sequence[Finding]) -> list[Block]:
    made = [Block("h3", ((file.name,),))]
    if file.status != "ok":
        made.append(_paragraph(file.message))
    if file.status == "unknown":
        return made
    many = amount(file.samples, file.clips)
    held = many if "records" in many else f"{many} samples"
    made.append(_paragraph(f"Group {file.group}; {held}, {len(file.failures)} failed."))
    models = file_summary.models(file)
    who = [(model.model, model.claimed, model.evidence) for model in models]
    made += _table(("in the file", "claimed", "what shows it"), who)
    rows = [row for model in models for row in _model(model)]
    head = ("model", "what", "n", "mean", "median", "mean without the first", "corrected mean")
    made += _table(head, rows)
    if findings:
        made.append(Block("list", tuple((_finding(one),) for one in findings)))
    return made


def _model(model: file_summary.ModelSummary) -> list[tuple[str, ...]]:
    rows = []
    for key, stage in model.stages.items():
        values = [stage.recorded.mean, stage.recorded.median, stage.recorded.mean_without_first]
        after = stage.corrected.mean if stage.corrected else None
        cells = [_ms(key, value) for value in values]
        corrected = "not measured" if stage.corrected is None else _ms(key, after)
        what = f"{key} ({stage.part}), ms" if stage.part else f"{key}, ms"
        rows.append((model.model, what, str(stage.recorded.n), *cells, corrected))
    told, mended = model.tokens_recorded, model.tokens_corrected
    if told.n:
        cells = [_number(one) for one in (told.mean, told.median, told.mean_without_first)]
        rows.append((model.model, "tokens", str(told.n), *cells, _number(mended.mean)))
    return rows


def _ms(key: str, value: float | None) -> str:
    return "-" if value is None else _number(milliseconds(key, value))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _finding(found: Finding) -> str:
    mended = f" Correction: {found.correction}" if found.correction else ""
    return f"{found.severity}: {found.message}{mended}"
