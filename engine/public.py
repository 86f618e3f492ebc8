"""What programs and notebooks call, as `import stagescope`: each function does one job, waits for
it and returns its result.

Jobs run one after another in a thread of their own, so calls from several threads, or from inside a
running event loop, queue and never mix.  What is answered becomes a run, as on disk.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import warnings
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, get_type_hints

import msgspec

from engine import settings
from engine.errors import BadInput, StageScopeError
from engine.media import dataset as datasets
from engine.media.dataset import Dataset
from engine.models import registry
from engine.prompts import DEFAULT_QUESTION
from engine.quoting import cut, quoted, shown
from engine.storage import new_file, run_store
from engine.storage.plan import Plan
from engine.storage.run_store import Run
from engine.types import OFFERED, OPTIONS, DecodeConfig, RunOptions, RunRequest, Sample, arranged

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from PIL.Image import Image

    from engine.attribution.explained import ExplainOptions, Explanation
    from engine.jobs.benchmark_job import BenchmarkJob
    from engine.jobs.model_work import ExplainJob
    from engine.jobs.queue import Job
    from engine.jobs.run_job import RunJob
    from engine.report.blocks import Block
    from engine.report.report_figures import Findings

    # An id of the dataset, a file, a folder or files, pictures, or events as an array.
    Shown: TypeAlias = Sample | str | Path | Image | np.ndarray[Any, Any] | Sequence[Any]

Told: TypeAlias = bool | Callable[[str], None]  # of `progress`
POLL_S = 0.05
SAMPLES = 3  # of a verification
COUNTED = ("measured", "cold", "in a batch", "after a pause")  # the first that a model has
NUMBERS = ("total", "load", "preprocess", "vision", "decode", "ttft", "tpot", "new_tokens")
MARKS = {
    **{"passed": "ok  ", "tie": "tie ", "failed": "FAIL", "unresolved": "open"},
    **{"skipped": "----", "refused": "none"},
}


class Drawn(ABC):
    """A result that a terminal shows as text and a notebook as static HTML without scripts."""

    @abstractmethod
    def blocks(self, notebook: bool) -> Iterable[Block]:
        """What is shown."""

    def __repr__(self) -> str:
        from engine.report import drawers

        return drawers.terminal(self.blocks(False))

    def _repr_html_(self) -> str:
        from engine.report import drawers

        return drawers.fragment([*self.blocks(True)])


class Results(Drawn):
    """The answers and times of a run; `folder` holds it."""

    def __init__(self, run: Run) -> None:
        self.run, self.folder = run, run.folder

    @cached_property
    def _found(self) -> Findings:
        from engine.report.report_figures import Findings

        return Findings([self.run], self.to_pandas())

    @property
    def answers(self) -> pd.DataFrame:
        """The text of each sample (rows) and model (columns), of its first repeat."""
        table = self.to_pandas()
        table = table[(table["group"] != "warm-up") & (table["error"] == "")]
        found = table.pivot_table("text", "sample", "label", "first", sort=False)
        return found.rename_axis(columns="model")

    @property
    def times(self) -> pd.DataFrame:
        """Medians of each model (rows) in milliseconds, and new_tokens, a number.  `runs`: which
        answers count, the measured ones or else the first (cold) ones.  A stage that was read from
        the cache has no time."""
        import pandas as pd

        from engine.analysis.results_table import labels

        rows = {}
        for label in labels(self._found.table):
            figures = [one for one in self._found.figures if one.label == label]
            group = next((one for one in COUNTED if one in {f.group for f in figures}), "")
            rows[label] = {"runs": group} | {
                one.metric: one.median
                for one in figures
                if one.group == group and one.source != "cached" and one.metric in NUMBERS
            }
        return pd.DataFrame.from_dict(rows, "index", columns=["runs", *NUMBERS])

    def to_pandas(self) -> pd.DataFrame:
        """A row for each result, as in a report's CSV."""
        from engine.analysis.results_table import frame

        return frame([run_store.read(self.folder)])

    def save(self, folder: str | Path | None = None) -> Path:
        """Copies the run into a new folder; by default the app's Results page lists it."""
        run_store.read(self.folder)  # refuses one that is gone
        place = settings.load().runs_dir / self.run.id if folder is None else folder
        return Path(shutil.copytree(self.folder, _made(place), dirs_exist_ok=True))

    def blocks(self, notebook: bool) -> Iterable[Block]:
        from engine.report import document

        yield from document.answers(self._found)
        yield from (document.first_page if notebook else document.summary)(self._found)


class Verification(Drawn):
    """The verdicts about each model; `certificate` is what was kept, at `path` if it could be."""

    def __init__(self, certificate: Mapping[str, Any], path: Path | None) -> None:
        self.certificate, self.path = certificate, path

    @property
    def verified(self) -> dict[str, bool]:
        """By model, whether all that was to be proved is."""
        return {model["name"]: model["verified"] for model in self.certificate["models"]}

    def to_pandas(self) -> pd.DataFrame:
        """A row for each verdict."""
        import pandas as pd

        columns = ["model", "sample", "check", "title", "outcome", "sentence"]
        return pd.DataFrame(self.certificate["verdicts"], columns=columns)

    def save(self, folder: str | Path) -> Path:
        """Writes the certificate into a new folder."""
        from engine.report import drawers

        file = _made(folder) / "certificate.json"
        file.write_text(drawers.as_json(self.certificate) + "\n", encoding="utf-8")
        return file.parent

    def blocks(self, notebook: bool) -> Iterable[Block]:
        from engine.report.blocks import Bullets, Heading, Paragraph
        from engine.verify import certificates

        for model in self.certificate["models"]:
            rows = [row for row in self.certificate["verdicts"] if row["model"] == model["name"]]
            rows.sort(key=lambda row: not row["sample"])  # grouped by sample, then all samples
            state = "verified" if model["verified"] else "NOT verified"
            yield Heading(3, f"{model['name']}: {state}")
            for sample, group in groupby(rows, key=lambda row: row["sample"]):
                lines = (f"{MARKS[row['outcome']]} {row['title']}: {row['sentence']}"
                         for row in group)  # fmt: skip
                yield Bullets(tuple(lines), f"sample {sample}" if sample else "all samples")
            if "server" in model["environment"]:
                where = model["environment"]
                yield Paragraph(f"{where['model']} at {where['server']}, {where['software']}.")
            if model["verified"] or "server" not in model["environment"]:
                yield Paragraph(certificates.covers(model).sentence())
            yield Bullets(tuple(f"- {sentence}" for sentence in model["unproved"]), "Not proved:")
        kept = self.path or "not saved"
        yield Heading(3, f"Certificate {self.certificate['hash'][: certificates.SHOWN]}: {kept}")


class Explained(Drawn):
    """What chosen words of an answer rest on; `picture` is the map over the input, as PNG."""

    def __init__(self, found: Explanation, picture: bytes) -> None:
        self.found, self.picture = found, picture
        self.answer, self.words = found.answer, found.words

    def to_pandas(self) -> pd.DataFrame:
        """A row for each part of the pictures: its box as shares of the sides, and the nats that
        the words lose without it."""
        import pandas as pd

        rows = [(*cell.box, cell.nats) for cell in self.found.shown_cells]
        return pd.DataFrame(rows, columns=["left", "top", "right", "bottom", "nats"])

    def save(self, folder: str | Path) -> Path:
        """Writes the map and the figures into a new folder."""
        from engine.attribution.explained import as_json
        from engine.report import drawers

        place = _made(folder)
        (place / "map.png").write_bytes(self.picture)
        text = drawers.as_json(as_json(self.found))
        (place / "explanation.json").write_text(text + "\n", encoding="utf-8")
        return place

    def blocks(self, notebook: bool) -> Iterable[Block]:
        from engine.report import explanation_part

        return explanation_part.answered(self.found, self.picture if notebook else b"")


def compare(
    sample: Shown,
    models: str | Sequence[str],
    question: str = DEFAULT_QUESTION,
    *,
    dataset: str | Path | None = None,
    repeat: int = 1,
    progress: Told = True,
    **options: Any,
) -> Results:
    """Asks each model about one sample, by turns.

    sample: an id of `dataset` (default: the demo scenes), a Sample, a clip, picture or recording, a
    folder of pictures, PIL pictures, or an array of events or of a picture [H, W, 3].  `options`
    are those of `stagescope compare`, with underscores.  A model that fails has its error in
    to_pandas(); StageScopeError if all do.  progress: a bar, none, or a function that gets each
    step as a line of text, here and below.
    """
    from engine.benchmark import saved_comparison

    _number("repeat", repeat, most=MAX_REPEATS)
    how = RunOptions(**arranged(_split(options, (), OFFERED)[1]))
    names = _names(models)
    with ExitStack() as temporary:
        folder = Path(tempfile.mkdtemp(prefix="stagescope-"))
        temporary.callback(shutil.rmtree, folder, ignore_errors=True)
        asked, root = _sample(sample, dataset, folder)
        requests = [how.ask(asked, name, _text("question", question)) for name in names]
        found = answered(requests, repeat, progress)
        if not any(job.result for jobs in found for job in jobs):
            _raise(found[0][0])
        answers = [
            saved_comparison.ModelAnswers(request, tuple(job.result or job.error for job in jobs))
            for request, jobs in zip(requests, found, strict=True)
        ]
        results = Results(run_store.read(saved_comparison.save(answers, root, folder)))
        weakref.finalize(results, temporary.pop_all().close)
        return results


def bench(
    models: str | Sequence[str],
    *,
    dataset: str | Path | None = None,
    samples: int | Sequence[str] | None = None,
    question: str | None = None,
    out: str | Path | None = None,
    progress: Told = True,
    **options: Any,
) -> Results:
    """Runs each model on the samples of a dataset, and saves the run in `out` (default: in the runs
    folder).

    samples: the first N, or ids (default: all).  `options` are those of `stagescope bench`, with
    underscores: repeat, warmup, order, length, batch, stop_after and the settings of answers.
    """
    from engine.jobs.benchmark_job import BenchmarkJob

    found = read_dataset(dataset)
    plan = planned(models, found, samples, question, options)
    place = None if out is None else _place("out", out)
    return ran(BenchmarkJob(plan=plan, root=found.root, folder=place), progress)


def verify(
    models: str | Sequence[str],
    *,
    dataset: str | Path | None = None,
    samples: int | None = None,
    progress: Told = True,
    **options: Any,
) -> Verification:
    """Proves that the stages of each model give its own answer, and keeps the certificate.

    samples: how many, evenly spread (default: 3).  `options` are those of `stagescope verify`, with
    underscores: prompt, runs, batch, max_new_tokens, backend, extent.
    """
    from engine.jobs.model_work import VerifyJob
    from engine.verify import certificates
    from engine.verify.verdict import VerifyRequest, choose

    found = read_dataset(dataset)
    own, answer = _split(options, ("prompt", "runs", "batch"), VERIFIED)
    names = [registry.entry(name).name for name in _names(models)]
    number = min(SAMPLES, len(found.samples)) if samples is None else samples
    chosen = choose(found.samples, _number("samples", number))
    request = VerifyRequest(tuple(names), chosen, **_typed(VerifyRequest, own), **answer)
    job = VerifyJob(request=request, dataset=str(found.root))
    _finish([job], progress)
    if job.certificate is None:
        _raise(job)
    name = f"{job.certificate['hash']}.json"
    return Verification(job.certificate, None if job.unkept else certificates.folder() / name)


def explain(
    sample: Shown,
    model: str,
    words: str,
    question: str = DEFAULT_QUESTION,
    *,
    dataset: str | Path | None = None,
    progress: Told = True,
    **options: Any,
) -> Explained:
    """Finds which parts of the input some words of the model's answer rest on.  `options` are those
    of `stagescope explain`, with underscores: grid, coarse, refined, batch, side, fill, time, and
    the settings of the answer."""
    from engine.attribution.explained import ExplainOptions, ExplainRequest
    from engine.jobs.model_work import ExplainJob

    own, answer = _split(options, ExplainOptions.__dataclass_fields__, EXPLAINED)
    how = RunOptions(**arranged({"cache": "off"} | answer))
    (name,) = _names([model])
    with tempfile.TemporaryDirectory(prefix="stagescope-") as folder:
        asked, _ = _sample(sample, dataset, Path(folder))
        run = how.ask(asked, name, _text("question", question))
        request = ExplainRequest(run, _text("words", words), (), explain_options(own))
        return explained(ExplainJob(request=request), progress)


def open_run(path: str | Path) -> Results:
    """A run: its folder, or its name in the runs folder."""
    found = run_store.find(str(_place("path", path)), settings.load().runs_dir)
    return Results(run_store.read(found))


def models() -> pd.DataFrame:
    """The models of models.toml; `reason`: why one cannot run here, "" if it can."""
    import pandas as pd

    names = ("name", "label", "family", "dtype", "kind")
    rows = [
        {name: getattr(entry, name) for name in names}
        | {"reason": registry.unavailable(entry) or ""}
        for entry in registry.entries()
    ]
    return pd.DataFrame(rows, columns=[*names, "reason"]).rename(columns={"kind": "shows"})


def samples(dataset: str | Path | None = None) -> list[Sample]:
    """The samples of a dataset's folder (default: the demo scenes)."""
    return list(read_dataset(dataset).samples)


# What the command line uses too.

MAX_REPEATS = 100
PLANNED = ("repeat", "warmup", "order", "length", "batch", "stop_after")
# The settings of an answer that each takes: runs of a dataset are greedy, and an explanation uses
# neither the cache nor the mode.
BENCHED = tuple(name for name in OFFERED if name not in ("temperature", "top_p", "seed"))
EXPLAINED = tuple(name for name in BENCHED if name not in ("backend", "cache", "mode"))
VERIFIED = ("max_new_tokens", "backend", "extent")


def read_dataset(root: str | Path | None) -> Dataset:
    """The dataset in this folder, or the demo dataset, which is made at first use."""
    if root is not None:
        return datasets.read(_place("dataset", root))
    from engine.demo.demo_dataset import ensure_dataset

    return datasets.read(ensure_dataset(settings.load().demo_dir))


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an answer by name, texts as the command line takes them."""
    values = {name: value for name, value in given.items() if OPTIONS[name].read is None}
    found = _typed(DecodeConfig, values) | _typed(RunOptions, values)
    for name in given.keys() - values.keys():
        if (value := given[name]) is not None and (read := OPTIONS[name].read):
            found[name] = read(_text(name, value))
    return found


def answered(
    requests: Sequence[RunRequest], repeat: int, progress: Told
) -> list[tuple[RunJob, ...]]:
    """The runs of each request, asked by turns (A B C A B C), so that a drift of the machine
    affects all models alike."""
    from engine.jobs.run_job import RunJob

    rounds = [[RunJob(request=one) for one in requests] for _ in range(repeat)]
    _finish([job for jobs in rounds for job in jobs], progress)
    return list(zip(*rounds, strict=True))


def planned(
    models: object,
    found: Dataset,
    samples: object,
    question: object,
    options: Mapping[str, Any],
    say: Callable[[str], None] = lambda text: warnings.warn(text, stacklevel=4),
) -> Plan:
    """The plan of a run on this dataset; the other arguments are those of bench().  `say` gets a
    note on too few samples."""
    every = [one.id for one in found.samples]
    if samples is None or isinstance(samples, int | float):
        chosen = every if samples is None else every[: _number("samples", samples)]
        if samples is not None and len(chosen) < samples:
            say(f"samples is {samples:,}; the dataset has only {len(chosen):,}: all are used.")
    elif isinstance(samples, str | Sample):
        chosen = [_id(samples)]
    elif isinstance(samples, Iterable) and not isinstance(samples, bytes):
        chosen = [_id(one) for one in samples]
    else:
        raise BadInput(f"samples is {_said(samples)}: give a number, or ids.")
    own, answer = _split(options, PLANNED, BENCHED)
    length = own.pop("length", None)
    if length is not None and _text("length", length) != "natural":
        form, _, digits = length.partition(":")
        if form != "forced" or not digits.isdecimal() or len(digits) > 9:
            raise BadInput(
                f"length is {quoted(length)}: write natural, or forced:N as in forced:64."
            )
        if "max_new_tokens" in answer:
            raise BadInput("length forced:N sets the number of tokens: leave max_new_tokens out.")
        answer |= {"max_new_tokens": int(digits), "min_new_tokens": int(digits)}
    return Plan(
        models=tuple(_names(models)),
        samples=tuple(datasets.find_all(found, chosen)),
        prompt=None if question is None else _text("question", question),
        **_typed(Plan, own),
        **arranged(answer),
    )


def ran(job: BenchmarkJob, progress: Told) -> Results:
    _finish([job], progress)
    if job.failure or job.folder is None:
        _raise(job)
    return Results(run_store.read(job.folder))


def explain_options(given: Mapping[str, Any]) -> ExplainOptions:
    """Of these; a small grid has smaller sides."""
    from engine.attribution.explained import ExplainOptions

    found = _typed(ExplainOptions, given)
    side = max(1, min(ExplainOptions.side, found.get("grid", ExplainOptions.grid)))
    return ExplainOptions(**{"side": side} | found)


def explained(job: ExplainJob, progress: Told) -> Explained:
    _finish([job], progress)
    if job.found is None:
        _raise(job)
    return Explained(job.found, job.map)


def _split(
    given: Mapping[str, Any], own: Iterable[str], of_answers: Iterable[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A call's own options, and those of an answer; BadInput for another one."""
    for name in given:
        if name not in (known := [*own, *of_answers]):
            raise BadInput(f"{quoted(name)} is no option: known are {', '.join(known)}.")
    answer = {name: value for name, value in given.items() if name not in own}
    return {name: value for name, value in given.items() if name in own}, read_options(answer)


def _typed(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are fields of a class, None left out; BadInput for another type, which a run
    could be written with but not read."""
    hints, found = get_type_hints(kind), {}
    for name in given.keys() & hints.keys():
        if (value := given[name]) is None:
            continue
        plain = hints[name] if hints[name] in (int, float, bool) else str
        try:
            found[name] = msgspec.convert(value, plain)
        except msgspec.ValidationError as error:
            wanted = {int: "a whole number", float: "a number", bool: "True or False", str: "text"}
            raise BadInput(f"{name} is {_said(value)}: give {wanted[plain]}.") from error
    return found


def _said(value: object) -> str:
    return quoted(value) if isinstance(value, str) else cut(repr(value))


def _id(sample: object) -> str:
    return sample.id if isinstance(sample, Sample) else _text("a sample", sample)


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise BadInput(f"{name} is {_said(value)}: give a text.")


def _place(name: str, value: object) -> Path:
    """A path that somebody gave, ~ expanded."""
    if not isinstance(value, str | Path) or not str(value).strip():
        raise BadInput(f"{name} is {_said(value)}: give a path.")
    return settings.expand(str(value))


def _number(name: str, value: object, most: int = 10**9) -> int:
    if type(value) is not int or not 1 <= value <= most:
        raise BadInput(f"{name} is {_said(value)}: give a whole number from 1 to {most:,}.")
    return value


def _names(models: object) -> list[str]:
    """A name or several, as a list or with commas between them."""
    given = models.split(",") if isinstance(models, str) else models
    names = [*given] if isinstance(given, Iterable) and not isinstance(given, bytes) else []
    names = [_text("a model", name).strip() for name in names]
    if not any(names):
        raise BadInput(f"models is {_said(models)}: name at least one model.")
    return registry.distinct([name for name in names if name])


def _finish(jobs: Sequence[Job], progress: Told) -> None:
    """Submits the jobs and waits for their ends; an interrupt cancels them and waits for that."""
    from tqdm.auto import tqdm

    from engine.jobs import queue  # slow, and a list of models needs none

    if not isinstance(progress, bool) and not callable(progress):
        raise BadInput(f"progress is {_said(progress)}: give True, False or a function.")
    submitted: list[Job] = []
    lines = deque[str]()

    def look(job: Job) -> None:
        """In the caller's thread, which gets what a function raises."""
        while lines and callable(progress):
            progress(lines.popleft())
        if bar.disable:  # reading the progress takes time from the job
            return
        done, total = job.progress
        if total and (bar.n, bar.total) != (done, total):  # it has steps of its own
            bar.total = total
            bar.update(done - bar.n)

    try:
        for job in jobs:
            job.tell = lines.append
            queue.manager().submit(job)
            submitted.append(job)
        with tqdm(total=len(jobs), disable=progress is not True) as bar:
            for job in jobs:
                bar.set_description(job.title)
                while not job.ends_within(POLL_S):
                    look(job)
                look(job)
                bar.update(bar.disable or not any(job.progress))
    except BaseException:
        # In a thread of its own, which no second interrupt breaks off.
        Thread(target=_cancel, args=(submitted,)).start()
        while not all(job.ended for job in submitted):
            time.sleep(POLL_S)
        raise


def _cancel(jobs: Iterable[Job]) -> None:
    for job in jobs:
        job.cancel()


def _raise(job: Job) -> NoReturn:
    """The job's failure as a StageScopeError."""
    if isinstance(job.failure, StageScopeError):
        raise job.failure
    raise StageScopeError(job.error) from job.failure


def _sample(given: Shown, root: str | Path | None, folder: Path) -> tuple[Sample, Path]:
    """The sample, and the folder of its dataset; pictures and arrays are written into `folder`."""
    if isinstance(given, Sample):
        own = (*given.frames, *given.images, *given.event_images, given.mp4, given.events)
        near = next((file.parent for file in own if file), folder)
        return given, near if root is None else _place("dataset", root)
    if isinstance(given, str) and not _place("sample", given).exists():
        read = read_dataset(root)
        return datasets.find(read, given), read.root
    from engine.media.media_sources import own_fault, own_sample

    paths = _paths(given, folder)
    files = [(path.name, path) for path in paths]
    sample, rejected = own_sample(files, [own_fault(*one) for one in files])
    if rejected or sample is None:
        raise BadInput(" ".join(rejected) or "There is no file: name a clip or pictures.")
    return sample, paths[0].parent


def _paths(given: Any, folder: Path) -> list[Path]:
    if isinstance(given, str | Path):
        path = _place("sample", given)
        if not path.exists():
            raise BadInput(f"{shown(path)} is not there: correct the path.")
        return sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    import numpy as np
    from PIL.Image import Image, fromarray, new

    several = isinstance(given, Iterable) and not isinstance(
        given, Image | np.ndarray | bytes | dict
    )
    found: list[Path] = []
    for number, one in enumerate(given if several else [given], 1):
        if isinstance(one, np.ndarray) and one.dtype.names:
            found.append(folder / f"events-{number}.npy")
            np.save(found[-1], one)
        elif isinstance(one, np.ndarray | Image):
            if isinstance(one, np.ndarray):
                if (
                    one.dtype != np.uint8
                    or one.ndim not in (2, 3)
                    or one.shape[2:] not in ((), (3,))
                ):
                    raise BadInput(
                        f"An array {list(one.shape)} of {one.dtype} is no sample: give a picture "
                        "[height, width, 3] of uint8, or events with the fields x, y, t, p."
                    )
                one = fromarray(one) if one.size else new("RGB", (0, 0))
            if not all(one.size):
                raise BadInput("A picture without pixels cannot be shown: give another one.")
            found.append(folder / f"{number}.png")
            one.convert("RGB").save(found[-1])
        elif isinstance(one, str | Path):
            found += _paths(one, folder)
        else:
            raise BadInput(f"A sample cannot be {type(one).__name__}: give paths or pictures.")
    return found


def _made(given: str | Path) -> Path:
    """A new or empty folder; StoreError if it cannot be made."""
    folder = _place("folder", given)
    new_file.make_folder(folder)
    return folder
