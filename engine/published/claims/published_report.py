"""The documents of published result files: the report, and the parts that pages show alone.  Their
parameter `corrected` concerns ratios and the names of models; tables of stages have both values."""

from collections.abc import Callable, Mapping, Sequence

from engine.analysis.acceptance import Acceptance, Range, amount
from engine.published.audit import SEVERITIES, audit
from engine.published.claims.headlines import Headline, headlines, named, waterfall
from engine.published.read import answer_pairs, file_summary
from engine.published.read.file_summary import AVERAGES
from engine.published.read.record_types import ResultFile, milliseconds
from engine.published.read.who_answered import KEY_FAMILY
from engine.quoting import NONE, Ends, count, percent, precise, times
from engine.report import drawers
from engine.report.blocks import Block, Bullets, Heading, Paragraph, Table

TITLE = "What published result files show"
PER_TOKEN = (
    "Time per token is the decoding time divided by all N tokens of an answer. If a file counts "
    "the first token to the prefill, it is divided by the N - 1 other tokens."
)
ACCEPTANCE = (
    "Position match: the share of ids that are equal at the same position. Shuffled: the same "
    "share over drafts and targets of different clips; a match within or below its range says "
    "nothing about the image. Prefix: equal ids from the start. W: the share of the first g ids "
    "that would be accepted. A cycle gives 1 + g W tokens and costs c g + 1 target tokens, where c "
    "is the draft's time per token divided by the target's, each over all N tokens (of own runs "
    "over the N - 1 steps after the first). The ceiling is the speed-up if every id were accepted. "
    "Below 1x, drafting is slower than the target alone. Intervals are over whole clips, or the "
    "sequences of own runs (jackknife, at least six)."
)
PARTS = (
    "Milliseconds that EventGPT saves per sample in each part (a negative number: it takes "
    "longer). Answers of different lengths are not equal work: decoding is split at EventGPT's own "
    'speed. "fewer tokens" is the time saved by shorter answers, "time per token" the time saved '
    "by faster decoding. If a file times a stage separately for one model only, this stage "
    "is compared together with the stage that includes it, or marked as timed for one "
    'model only. "unaccounted" is the total minus the stages.'
)
STATUS = {"ok": "read", "failed": "the run failed", "unknown": "not usable"}
AGREES = {True: "✔ agrees", False: "✖ contradicts the label", None: "? no evidence"}
NAMED = 3  # at most so many files are named
_KINDS = {
    "main": "as it is",
    "raw": "ids including the prompt",
    "without_sliced": "without answers whose first ids are missing",
}


def document(files: Sequence[ResultFile], form: str) -> str:
    """The report as one self-contained HTML page ("html") or as GitHub's Markdown ("md")."""
    return drawers.html(TITLE, blocks(files)) if form == "html" else drawers.markdown(blocks(files))


def blocks(files: Sequence[ResultFile]) -> list[Block]:
    usable = [file for file in files if file.status == "ok"]
    claims = headlines(files)
    errors = sum(one.severity == "error" for file in files for one in audit(file))
    mistakes = count(errors, "false figure or label", "false figures or labels")
    found = {}
    for file in usable:
        for kind, one in answer_pairs.variants(file).items():
            way = "" if kind == "main" else f" ({kind.replace('_', ' ')})"
            found[file.name + way] = one
    acceptances = acceptance_table("file", found)
    about: list[Block] = [Heading(3, "EventGPT's answers as drafts"), Paragraph(ACCEPTANCE)]
    concerned: dict[str, list[str]] = {}
    for file in usable:
        for point, is_open in _open_points(file).items():
            concerned.setdefault(point, []).extend([file.name] if is_open else [])
    unknown = []
    for point, names in concerned.items():
        which = ", ".join(names)
        if len(names) > NAMED or len(names) == len(usable) > 1:
            which = f"{len(names):,} of {len(usable):,} files"
        if names:
            unknown.append(f"{point} ({which}).")
    return [
        Heading(1, TITLE),
        Bullets(tuple(claim.judged for claim in claims)),
        Paragraph(
            f"{summary(files)} The audit found {mistakes} in them. Each "
            "table says whether its values are recorded or corrected. Times are in milliseconds. "
            "If a stage of the first record includes a warm-up, the corrected values replace only "
            "this stage, by the mean of the other records, and reduce the total by the same time."
        ),
        Heading(2, "What was claimed"),
        Paragraph(PER_TOKEN),
        *(block for one in claims for block in (Heading(3, one.claim), *claim_blocks(one))),
        Heading(2, "What the files show"),
        files_table(files),
        *difference_blocks(usable),
        *(about if acceptances else []),
        *acceptances,
        *stated_table(usable),
        Heading(2, "What cannot be known"),
        Bullets(tuple(unknown) or ("Nothing: no file has results.",)),
        Heading(2, "File by file"),
        *(block for file in files for block in file_blocks(file)),
    ]


def summary(files: Sequence[ResultFile]) -> str:
    status = [file.status for file in files]
    parts = [f"{count(len(status), 'file')}: {status.count('ok'):,} with results"]
    if failed := status.count("failed"):
        parts.append(f"{failed:,} of a failed run")
    if unknown := status.count("unknown"):
        parts.append(f"{unknown:,} that cannot be used")
    answers = sum(len(file.records) for file in files)
    return f"{', '.join(parts)}; {count(answers, 'answer')} in all."


def files_table(files: Sequence[ResultFile], corrected: bool = True) -> Table:
    rows = []
    for file in files:
        names = list(dict.fromkeys(named(file, model, corrected) for model in file.models))
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        models = "; ".join(names[:2]) + more  # a name may hold a comma
        group, numbers = "unknown", (NONE, NONE, NONE)
        if file.status != "unknown":
            severities = [one.severity for one in audit(file)]
            found = " / ".join(f"{severities.count(level):,}" for level in SEVERITIES)
            records, failed = amount(file.samples, file.clips), f"{len(file.failures):,}"
            group, numbers = str(file.group), (records, failed, found)
        rows.append((file.name, group, STATUS[file.status], models or NONE, *numbers))
    return Table(
        "records: samples with an answer; failed: samples that the file lists as failed; findings: "
        "errors / warnings / notes.",
        ("file", "group", "status", "models", "records", "failed", "findings"),
        tuple(rows),
        4,
    )


def claim_blocks(headline: Headline) -> list[Block]:
    columns = ("file", "against", "n", "recorded", "corrected", "median over clips (95 %)", "notes")
    rows = []
    for one in headline.evidence:
        span = (one.paired.low, one.paired.high) if one.paired else None
        median = times(one.paired.median, span) if one.paired else NONE
        ratios = (times(one.recorded), times(one.corrected), median)
        rows.append((one.file, one.other, one.amount, *ratios, "; ".join(one.notes) or NONE))
    reasons = tuple(f"{why}: {', '.join(files)}" for why, files in headline.without.items())
    why = "Files without evidence for this claim, and why:"
    made: list[Block] = [Paragraph(headline.verdict), *_table(columns, rows, len(columns))]
    return [*made, Bullets(reasons, why)] if reasons else made


def _table(
    columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], words: int, caption: str = ""
) -> list[Table]:
    return [Table(caption, columns, tuple(rows), words)] if rows else []


def difference_blocks(files: Sequence[ResultFile], corrected: bool = True) -> list[Block]:
    rows, notes = [], dict[str, list[str]]()
    for file in files:
        fall = waterfall(file, corrected)
        if fall is None:
            continue
        parts = ", ".join(f"{name} {ms:+,.1f}" for name, ms in fall.parts.items())
        ends = (f"{fall.slow} {fall.slow_ms:,.1f}", f"{fall.fast} {fall.fast_ms:,.1f}")
        rows.append((file.name, *ends, fall.nonsense or parts))
        if fall.per_token_ratio is not None:
            definition = f"Time per token {answer_pairs.definition(file)}"
            notes.setdefault(definition, []).append(file.name)
        if not file.group.total_is_whole_run:
            notes.setdefault("Totals without loading", []).append(file.name)
    table = _table(("file", "from", "to", "parts"), rows, 4)
    lines = (Paragraph(f"{note}: {', '.join(names)}.") for note, names in notes.items())
    return [Heading(3, "Parts of a difference"), Paragraph(PARTS), *table, *lines] if rows else []


def acceptance_table(what: str, found: Mapping[str, Acceptance]) -> list[Table]:
    gamma = next((one.gamma for one in found.values()), 0)
    columns = (what, "pairs", "position match (95 %)", "shuffled (95 %)", "mean prefix",
               f"W at g = {gamma}", "tokens per cycle", "cost ratio c", "ceiling",
               "predicted speed-up (95 %)")  # fmt: skip
    rows = [
        (
            name,
            one.amount,
            ranged(percent, one.rate),
            ranged(percent, one.shuffled),
            f"{one.mean_prefix:.2f}",
            f"{one.first_window:.3f}",
            f"{one.expected_tokens:.2f}",
            NONE if one.cost_ratio is None else f"{one.cost_ratio:.3f}",
            times(one.ceiling),
            ranged(times, one.speedup),
        )
        for name, one in found.items()
    ]
    return _table(columns, rows, 1, "Acceptance by token ids")


def comparison_name(draft: str, target: str, kind: str) -> str:
    name = draft if kind in _KINDS else kind.removesuffix("_shifted")
    shifted = "against the target from its second id" if kind.endswith("_shifted") else ""
    how = _KINDS.get(kind, shifted)
    return f"{name} for {target}" + (f", {how}" if how else "")


def stated_table(files: Sequence[ResultFile], corrected: bool = True) -> list[Table]:
    rows = []
    for file in files:
        for one in answer_pairs.stated(file, corrected):
            match = "no ids" if one.rows is None else percent(one.rows)
            rows.append((file.name, one.path, percent(one.stated), match))
    caption = "Stated acceptance beside the position match of the ids"
    return _table(("file", "place in the file", "stated", "position match"), rows, 2, caption)


def ranged(words: Callable[[float, Ends], str], found: Range | None) -> str:
    """ "12.3% (10.0% to 14.0%)", "1.23x (1.10 to 1.40)"."""
    return words(found.value, found.interval) if found else NONE


def file_blocks(file: ResultFile) -> list[Block]:
    """A file's models, stages and findings, for the report and the terminal."""
    made: list[Block] = [Heading(3, file.name)]
    if file.message:
        made.append(Paragraph(file.message))
    if file.status != "unknown":
        made += figure_blocks(file)
    lines = []
    for one in audit(file):
        end = f" Correction: {one.correction}" if one.correction else ""
        lines.append(f"{one.severity}: {one.message}{end}")
    return [*made, Bullets(tuple(lines))] if lines else made


def figure_blocks(file: ResultFile, corrected: bool = True) -> list[Block]:
    answers = amount(file.samples, file.clips)
    held = answers if "records" in answers else count(file.samples, "sample")
    models = file_summary.models(file)
    who, rows = [], []
    for name, model in models.items():
        who.append((name, model["claimed"], AGREES[model["agrees"]], model["evidence"]))
        label = named(file, name, corrected, key=True)
        for key, stage in model["stages"].items():
            after = stage["corrected"]
            cells = [_ms(key, stage[one]) for one in AVERAGES]
            what = f"{key} ({stage['part']}), ms" if stage["part"] else f"{key}, ms"
            mended = _ms(key, after["mean"]) if after else "not measured"
            rows.append((label, what, str(stage["n"]), *cells, mended))
        recorded = model["token_averages"]["recorded"]
        if recorded["n"]:
            values = [*map(recorded.get, AVERAGES), model["tokens_corrected"]]
            rows.append((label, "tokens", str(recorded["n"]), *map(precise, values)))
    columns = ("model", "what", "n", "mean", "median", "mean without the first", "corrected mean")
    return [
        Paragraph(f"Group {file.group}; {held}, {len(file.failures):,} failed."),
        *_table(("name in the file", "claimed", "agreement", "evidence"), who, 4),
        *_table(columns, rows, 2),
    ]


def _ms(key: str, value: float | None) -> str:
    return NONE if value is None else precise(milliseconds(key, value))


def _open_points(file: ResultFile) -> dict[str, bool]:
    """What a file can leave open, and whether it does."""
    rules = {one.rule for one in audit(file)}
    answers = any(record.ids or record.text for record in file.records)
    one_image = "one_image" in rules  # then EventGPT's answers differ from those of generate()
    contexts = [r.context for r in file.records if KEY_FAMILY.get(r.model) == "eventgpt"]
    timed = (
        {file.group.stages.get(key) for r in file.of(model, corrected=True) for key in r.times}
        for model in file.models
    )
    told = {"do_sample", "temperature", "seed"} & {key.rsplit(".", 1)[-1] for key in file.config}
    return {
        "Which checkpoint answered, if only the label names the model: such names are shown as "
        "claimed": any(one.family is None for one in file.identities.values()),
        "How many event images EventGPT got, because no context is recorded": bool(contexts)
        and not any(contexts),
        "Whether the answers equal those of generate(), because no file has both for one "
        "input": answers and not one_image,
        "Whether the other model's answers equal those of generate(); EventGPT's cannot, because "
        "it got one event image": answers and one_image,
        "Whether outputs were sampled, and with which seed, because the settings do not "
        "say": not told,
        "The natural length and time of answers that a limit stopped": "capped" in rules,
        "The time of the vision tower, which is measured for one model only or as part of a longer "
        "time": any(parts and "vision" not in parts for parts in timed),
        "The speed-up of drafting over several cycles, because finished answers show only the "
        "first cycle": answer_pairs.acceptance(file) is not None,
    }
