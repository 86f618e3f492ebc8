"""The report of published result files: what was claimed, what they show, what stays unknown."""

from __future__ import annotations

from collections.abc import Sequence

from engine.analysis.acceptance import Acceptance, Range, amount
from engine.published.audit import SEVERITIES, AuditFinding, audit
from engine.published.claims.evidence import PER_TOKEN, both_denominators, unknowns
from engine.published.claims.headlines import Headline, headlines
from engine.published.claims.waterfall import waterfall
from engine.published.read import answer_pairs, file_summary
from engine.published.read.file_summary import AVERAGES, Figures
from engine.published.read.record_types import ResultFile, milliseconds
from engine.quoting import NONE, percent, precise, times
from engine.report import drawers
from engine.report.blocks import Block, Bullets, Heading, Paragraph, ReportTable

TITLE = "What published result files show"
Audited = tuple[ResultFile, tuple[AuditFinding, ...]]


def markdown(files: Sequence[ResultFile]) -> str:
    """The report as GitHub's Markdown."""
    return drawers.markdown(blocks(files))


def page(files: Sequence[ResultFile]) -> str:
    """The report as one self-contained HTML page."""
    return drawers.html(TITLE, blocks(files))


def blocks(files: Sequence[ResultFile]) -> list[Block]:
    """The report's parts in their order."""
    audited = [(file, audit(file)) for file in files]
    usable = [(file, findings) for file, findings in audited if file.status == "ok"]
    usable_files = [file for file, _ in usable]
    claims = headlines(files)
    return [
        Heading(1, TITLE),
        Bullets(tuple(claim.judged for claim in claims)),
        Paragraph(_opening(audited)),
        Heading(2, "What was claimed"),
        Paragraph(PER_TOKEN),
        *(block for one in claims for block in (Heading(3, one.claim), *claim_blocks(one))),
        Heading(2, "What the files show"),
        *_overview(audited),
        *_waterfalls(usable_files),
        *_acceptances(usable_files),
        *(
            Paragraph(f"{file.name}: {sentence}")
            for file, findings in usable
            if (sentence := both_denominators(file, findings))
        ),
        *_unchecked(usable_files),
        Heading(2, "What cannot be known"),
        Bullets(unknowns(audited) or ("Nothing: no file has results.",)),
        Heading(2, "File by file"),
        *(block for file, findings in audited for block in file_blocks(file, findings)),
    ]


def _table(
    columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], words: int
) -> list[ReportTable]:
    return [ReportTable("", columns, tuple(rows), words)] if rows else []


def _opening(audited: Sequence[Audited]) -> str:
    status = [file.status for file, _ in audited]
    errors = sum(finding.severity == "error" for _, findings in audited for finding in findings)
    return (
        f"{len(audited)} files: {status.count('ok')} with results, {status.count('failed')} of "
        f"failed runs, {status.count('unknown')} of another kind. The audit found {errors} false "
        "figures or labels in them. Each table says whether its values are recorded or corrected. "
        "Times are in milliseconds. If a stage of the first record includes a warm-up, the "
        "corrected values replace only this stage, by the mean of the other records, and reduce "
        "the total by the same time."
    )


def claim_blocks(headline: Headline) -> list[Block]:
    """The verdict on a claim, the files' evidence, and the files without evidence."""
    columns = ("file", "against", "n", "recorded", "corrected", "median over clips (95 %)", "notes")
    rows = [
        (
            one.file,
            one.other,
            one.amount,
            times(one.recorded),
            times(one.corrected),
            times(one.paired.median, (one.paired.low, one.paired.high)) if one.paired else NONE,
            "; ".join(one.notes) or NONE,
        )
        for one in headline.evidence
    ]
    made: list[Block] = [Paragraph(headline.verdict), *_table(columns, rows, len(columns))]
    if headline.without:
        made.append(Paragraph("Files without evidence for this claim, and why:"))
        reasons = (f"{one.reason}: {', '.join(one.files)}" for one in headline.without)
        made.append(Bullets(tuple(reasons)))
    return made


def _overview(audited: Sequence[Audited]) -> list[ReportTable]:
    rows = [
        (
            file.name,
            str(file.group),
            amount(file.samples, file.clips),
            str(len(file.failures)),
            " / ".join(str(sum(one.severity == level for one in findings)) for level in SEVERITIES),
        )
        for file, findings in audited
    ]
    return _table(("file", "group", "n", "failed", "errors / warnings / notes"), rows, 2)


def _waterfalls(files: Sequence[ResultFile]) -> list[Block]:
    falls = [(file, fall) for file in files if (fall := waterfall(file))]
    if not falls:
        return []
    rows = [
        (
            fall.file,
            f"{fall.slow} {fall.slow_ms:,.1f}",
            f"{fall.fast} {fall.fast_ms:,.1f}",
            fall.nonsense or ", ".join(f"{part.name} {part.ms:+,.1f}" for part in fall.parts),
        )
        for _, fall in falls
    ]
    lacking = [file.name for file, _ in falls if not file.group.total_is_whole_run]
    made: list[Block] = [
        Heading(3, "Parts of a difference"),
        Paragraph(
            "Milliseconds that EventGPT saves per sample in each part (a negative number: it takes "
            "longer), from corrected values. Answers of different lengths are not equal work: "
            '"fewer tokens" is the time saved by shorter answers, "time per token" the time saved '
            "by faster decoding. If a file times a stage separately for one model only, this stage "
            "is compared together with the stage that includes it, or marked as timed for one "
            'model only. "unaccounted" is the total minus the stages.'
        ),
        *_table(("file", "from", "to", "parts"), rows, 4),
    ]
    files_of: dict[str, list[str]] = {}  # by what "time per token" means
    for _, fall in falls:
        if fall.per_token_ratio is not None:
            files_of.setdefault(fall.definition, []).append(fall.file)
    for definition, names in files_of.items():
        made.append(Paragraph(f"Time per token {definition}: {', '.join(names)}."))
    if lacking:
        made.append(Paragraph(f"Totals without loading: {', '.join(lacking)}."))
    return made


def _acceptances(files: Sequence[ResultFile]) -> list[Block]:
    rows, gamma = [], 0
    for file in files:
        stated = {one.ours: one.stated for one in answer_pairs.stated(file)}
        for name, acceptance in answer_pairs.variants(file).items():
            gamma = acceptance.gamma
            own = stated.get(acceptance.rate.value if acceptance.rate else None)
            title = file.name if name == "main" else f"{file.name} ({name.replace('_', ' ')})"
            cells = acceptance_cells(acceptance)
            rows.append((title, acceptance.amount, percent(own), *cells))
    if not rows:
        return []
    columns = ("file", "pairs", "stated", "position match (95 %)", "shuffled (95 %)", "mean prefix",
               f"W{gamma}", "cost ratio", "ceiling", "predicted speed-up (95 %)")  # fmt: skip
    return [
        Heading(3, "EventGPT's answers as drafts"),
        Paragraph(
            "Position match is the share of token ids that are equal at the same position. "
            "Shuffled is the same share between drafts and targets of different clips: a match "
            "within or below its range says nothing about the image. Intervals are over whole "
            "clips (jackknife, at least six clips). W is the share of the first drafted ids that "
            "the target would accept. The cost ratio is the draft's time per token divided by the "
            "target's, over all N tokens of the answers. The ceiling is the speed-up if every id "
            "were accepted. A speed-up below 1x is a slowdown."
        ),
        *_table(columns, rows, 1),
    ]


def acceptance_cells(found: Acceptance) -> tuple[str, ...]:
    """Position match, shuffled, mean prefix, W, cost ratio, ceiling, predicted speed-up."""
    return (
        range_percent(found.rate),
        range_percent(found.shuffled),
        f"{found.mean_prefix:.2f}",
        f"{found.first_window:.3f}",
        NONE if found.cost_ratio is None else f"{found.cost_ratio:.3f}",
        times(found.ceiling),
        range_times(found.speedup),
    )


def range_percent(found: Range | None) -> str:
    """ "12.3% (10.0% to 14.0%)"."""
    return percent(found.value, found.interval) if found else NONE


def range_times(found: Range | None) -> str:
    """ "1.23x (1.10 to 1.40)"."""
    return times(found.value, found.interval) if found else NONE


def _unchecked(files: Sequence[ResultFile]) -> list[Block]:
    """Stated acceptance rates of files without token ids."""
    rows = [
        (file.name, one.path, percent(one.stated))
        for file in files
        for one in answer_pairs.stated(file)
        if one.ours is None
    ]
    if not rows:
        return []
    return [
        Paragraph("These rates cannot be checked, because their files have no token ids."),
        *_table(("file", "place in the file", "stated"), rows, 2),
    ]


def file_blocks(file: ResultFile, findings: Sequence[AuditFinding]) -> list[Block]:
    """A file's models, stages and findings, for the report and the terminal."""
    made: list[Block] = [Heading(3, file.name)]
    if file.status != "ok":
        made.append(Paragraph(file.message))
    if file.status == "unknown":
        return made
    answers = amount(file.samples, file.clips)
    held = answers if "records" in answers else f"{answers} samples"
    made.append(Paragraph(f"Group {file.group}; {held}, {len(file.failures)} failed."))
    models = file_summary.models(file)
    who = [(name, model["claimed"], model["evidence"]) for name, model in models.items()]
    made += _table(("name in the file", "claimed", "evidence"), who, 3)
    columns = ("model", "what", "n", "mean", "median", "mean without the first", "corrected mean")
    made += _table(columns, [row for name, one in models.items() for row in _model(name, one)], 2)
    if findings:
        corrected = (f" Correction: {one.correction}" if one.correction else "" for one in findings)
        both = zip(findings, corrected, strict=True)
        made.append(Bullets(tuple(f"{one.severity}: {one.message}{end}" for one, end in both)))
    return made


def _model(name: str, model: Figures) -> list[tuple[str, ...]]:
    rows = []
    for key, stage in model["stages"].items():
        after = stage["corrected"]
        corrected = "not measured" if after is None else _ms(key, after["mean"])
        what = f"{key} ({stage['part']}), ms" if stage["part"] else f"{key}, ms"
        cells = [_ms(key, stage[one]) for one in AVERAGES]
        rows.append((name, what, str(stage["n"]), *cells, corrected))
    recorded = model["token_averages"]["recorded"]
    if recorded["n"]:
        cells = [
            precise(value) for value in (*map(recorded.get, AVERAGES), model["tokens_corrected"])
        ]
        rows.append((name, "tokens", str(recorded["n"]), *cells))
    return rows


def _ms(key: str, value: float | None) -> str:
    return NONE if value is None else precise(milliseconds(key, value))
