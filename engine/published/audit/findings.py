"""How the hits of checks become findings, with the sentences of rules.toml.  A check is a function
that yields hits; the numbers among a hit's values are the figures of its finding."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from string import Formatter
from typing import Any, Literal, NamedTuple

from engine.published.read import answer_pairs
from engine.published.read.record_types import AnswerRecord, ResultFile
from engine.quoting import count, precise_ms

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class AuditFinding:
    """One problem in one sentence, with its evidence.  paths: the records concerned; correction:
    how they were corrected, "" for not at all."""

    message: str
    figures: Mapping[str, float] = field(default_factory=dict)
    correction: str = ""
    model: str = ""
    paths: tuple[str, ...] = ()
    rule: str = ""
    severity: Severity = "error"

    def as_dict(self) -> dict[str, Any]:
        """As `import --json` prints it; `records` is their number."""
        first = {"rule": self.rule, "severity": self.severity, "records": len(self.paths)}
        return first | asdict(self) | {"paths": list(self.paths[:200])}


@dataclass(frozen=True)
class Sentence:
    """What a check says, as templates; noun: what its hits concern."""

    message: str
    correction: str = ""
    noun: str = "answer"


@dataclass(frozen=True)
class Rule:
    """checks: by the name of the function.  any_form: it holds for unknown forms too, whose units,
    vocabulary and models are not known."""

    name: str
    severity: Severity
    title: str
    checks: Mapping[str, Sentence]
    any_form: bool = False

    def findings(self, file: ResultFile) -> Iterator[AuditFinding]:
        for name, sentence in self.checks.items() if self.any_form or file.group.is_known else ():
            for one in SEARCHES[name](file):
                number = len(one.concerned)
                words = {
                    "name": name_of(file, one.model),
                    "draft": name_of(file, file.draft),
                    "target": name_of(file, file.target),
                    "share": share(number, one.whole or number, sentence.noun),
                    "count": count(number, sentence.noun),
                    **one.values,
                }
                template, values = _Template(number), one.values.items()
                yield AuditFinding(
                    message=template.vformat(sentence.message, (), words),
                    figures={key: float(v) for key, v in values if isinstance(v, (int, float))},
                    correction=template.vformat(sentence.correction, (), words),
                    model=one.model,
                    paths=tuple(concerned.path for concerned in one.concerned),
                    rule=self.name,
                    severity=self.severity,
                )


Values = Mapping[str, Any]


class Hit(NamedTuple):
    """What a check found.  concerned: records, figures, claims or failures: what has a path in the
    file.  whole: how many were checked."""

    concerned: Sequence[Any]
    values: Values
    whole: int
    model: str


def hit(concerned: Iterable[Any], whole: int = 0, model: str = "", /, **values: Any) -> Hit:
    return Hit(tuple(concerned), values, whole, model)


Hits = Iterator[Hit]
FileSearch = Callable[[ResultFile], Hits]
ModelSearch = Callable[[ResultFile, str], Hits]
# None for a right record, otherwise values for the message
WrongRecord = Callable[[ResultFile, AnswerRecord], Values | None]
SEARCHES: dict[str, FileSearch] = {}


def of_file(search: FileSearch) -> FileSearch:
    SEARCHES[search.__name__] = search
    return search


def of_model(search: ModelSearch, timed: bool = False) -> ModelSearch:
    """Makes a function that searches the records of one model a check.  timed: without models whose
    times are in another unit."""

    def every(file: ResultFile) -> Hits:
        for model in file.models:
            if not (timed and any(model in doubt.ms for doubt in answer_pairs.doubts(file))):
                yield from (one._replace(model=model) for one in search(file, model))

    SEARCHES[search.__name__] = every
    return search


of_times = partial(of_model, timed=True)


def of_record(
    of: Callable[[ResultFile, str], Sequence[AnswerRecord]] = ResultFile.of,
    least: Callable[[int], float] = lambda _: 1,
    most: str = "",
) -> Callable[[WrongRecord], WrongRecord]:
    """Makes a function that judges one record a check.  of: the records to judge; least: how many
    of them have to be wrong.  The values are those of the record with the greatest value of the
    name `most`, otherwise of the first."""

    def add(wrong: WrongRecord) -> WrongRecord:
        def search(file: ResultFile, model: str) -> Hits:
            records = of(file, model)
            judged = [(record, wrong(file, record)) for record in records]
            bad = [(record, values) for record, values in judged if values is not None]
            if bad and len(bad) >= least(len(records)):
                values = max((values for _, values in bad), key=lambda one: one.get(most, 0))
                yield hit((record for record, _ in bad), len(records), **values)

        search.__name__ = wrong.__name__
        of_model(search)
        return wrong

    return add


class _Template(Formatter):
    """Adds {is|are}, {x:ms} and {x:span} to the templates of Python."""

    def __init__(self, number: int) -> None:
        self.number = number

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if "|" in str(key):
            return str(key).split("|")[self.number != 1]
        return kwargs[str(key)]

    def format_field(self, value: Any, spec: str) -> str:
        if spec == "span":  # "12 ms", "5 s", "0.02 ms"
            return f"{value / 1000:,.4g} s" if value >= 1000 else f"{value:,.3g} ms"
        return precise_ms(value) if spec == "ms" else format(value, spec)


def name_of(file: ResultFile, model: str) -> str:
    """A model in a sentence: its claimed name, followed by the file's key if they differ."""
    identity = file.identities.get(model)
    claimed = identity.claimed if identity else model
    return claimed if claimed.lower() == model.lower() else f"{claimed} ({model})"


def share(part: int, whole: int, noun: str) -> str:
    """ "all 5 answers", "1 of 5 answers", "the only answer"."""
    if part == whole:
        return f"all {count(whole, noun)}" if whole > 1 else f"the only {noun}"
    return f"{part:,} of {count(whole, noun)}"
