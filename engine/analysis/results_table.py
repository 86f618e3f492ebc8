"""The results of runs as one pandas table: one line per result, one column per value.

Boundary: from rows on disk to a table; computes only labels and groups.  Token ids and spans stay
on disk: Run.row reads a row by its `offset`.  Times are milliseconds, NaN if not measured; a failed
result has an error and no figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from engine.analysis.choice_reading import letters, likeliest, read_choice
from engine.analysis.result_device import asked_of, backend_of, device_of, shared_of
from engine.machine.load import MachineLoad
from engine.media_options import COUNT_SPLIT
from engine.storage.result_rows import SPANS, Place, ResultRow
from engine.storage.run_store import Run

if TYPE_CHECKING:
    import pandas as pd

Group = Literal["measured", "in a batch", "cold", "warm-up", "after a pause"]
IN_A_BATCH: Group = "in a batch"
GROUPS: tuple[Group, ...] = ("measured", IN_A_BATCH, "cold", "warm-up", "after a pause")
NUMBERS = (
    *(f"{name}_ms" for name in SPANS),
    "vision_original_ms",
    "ttft_ms",
    "tpot_ms",
    "tokens_per_s",
    "total_ms",
    "uncached_total_ms",
    "unaccounted_ms",
    "new_tokens",
    "context_tokens",
    "batch_ms",
    "batch_tokens",
)
TEXTS = ("text", "reference", "prompt")
LOAD = tuple(one.name for one in fields(MachineLoad))
LOADS = ("cpu_ms", *(f"load_{name}" for name in LOAD))
PLACES = ("node", "host", "address", "actor")
# Of multiple-choice questions; choices is 0 and the others are "" for other results.
CHOICES = ("choices", "choice_form", "question_task", "right_letter", "right_choice", "choice",
           "likeliest", "right")  # fmt: skip


def frame(runs: Sequence[Run], answers: bool = True, titled: bool = False) -> pd.DataFrame:
    """All results of the runs, in order.  answers=False leaves out texts and token times.

    title       the model's label in models.toml when the run began
    label       the model's name, or with `titled` its title; with pixels and backend if they are
                not the default, with the run's id if two runs have results of one model, and with
                the device if results come from several types of devices or from a shared one
    group       "measured", or why the result is in no mean: in a batch, cold, warm-up, or after a
                pause
    off_script  whether the model lists its training questions and this question is not among them
    window, split, perturb: of pictures drawn from raw events, and what was changed; "" for none
    extent      the size rule of event pictures; "" if none were drawn or it is not known
    batch       the number of samples answered together; batch_id, batch_ms, batch_tokens and
                batch_cached are values of the whole batch
    cached      whether a stage was read from the cache
    forced      whether the answer's length was forced
    backend     the backend that decoded, "" without an answer; backend_asked: the requested one
    device      the type of device, and whether it was shared; shared: only the second
    node, host, address, actor: the place, for results of a cluster
    verified    the certificate that covers the result, or the closest one; None without any
    standing    "verified", "not covered" or "unverified"; missing: what is not covered
    token_ms    times of the new tokens since the run's start, an array per result
    cpu_ms      CPU time of the process during the run; only for single samples on the CPU
    load_...    the machine's load during the run (load.MachineLoad); NaN if not known
    choices     the number of options; choice_form and question_task as in the row
    choice      the letter that the answer names, "" if it cannot be read; likeliest: by
                log-probability, "" if not known; right_letter and right_choice: the right option
    right       "yes" or "no"; "" without an answer or a known right option
    """
    return join([one(run, answers) for run in runs], [run.id for run in runs], titled)


def one(run: Run, answers: bool = True) -> pd.DataFrame:
    """The results of a single run, without labels, because labels depend on the other runs."""
    import pandas as pd

    table = pd.DataFrame(_lines(run, answers), columns=_columns(answers))
    for name in (*NUMBERS, *LOADS):
        table[name] = pd.to_numeric(table[name], errors="coerce").astype("float64")
    return table


def join(
    tables: Sequence[pd.DataFrame], names: Sequence[str], titled: bool = False
) -> pd.DataFrame:
    """Concatenates tables of one(); `names` distinguish runs that have the same model.

    `titled`: labels for people; other programs and the command line get the models' names.
    """
    import pandas as pd

    numbered = [table.assign(number=number) for number, table in enumerate(tables)]
    filled = [table for table in numbered if len(table)] or numbered[:1]
    table = filled[0] if len(filled) == 1 else pd.concat(filled, ignore_index=True)
    return table.assign(label=_labels(table, names, titled))


def _columns(answers: bool) -> list[str]:
    fixed = ["run", "number", "offset", "title"]
    fixed += ["model", "family", "sample", "sequence", "repeat", "phase"]
    state = ["group", "cached", "forced", "mode", "pixels", "stop", "error", "verified", "truth"]
    state += ["backend", "backend_asked", "device", "shared", *PLACES]
    state += ["off_script", "extent", "window", "split", "perturb", *CHOICES]
    batch = ["batch", "batch_id", "batch_cached", "standing", "missing"]
    sources = [f"{name}_source" for name in SPANS]
    numbers = [*sources, *NUMBERS, *LOADS]
    return [*fixed, *state, *batch, *numbers, *((*TEXTS, "token_ms") if answers else ())]


def _lines(run: Run, answers: bool) -> Iterator[list[Any]]:
    seen, titles = set(), {one.name: one.label for one in run.header.models}
    for offset, row in run.results():
        if row.task not in seen:  # a line may be there twice
            seen.add(row.task)
            yield [run.id, 0, offset, titles.get(row.model, row.model), *_line(row, answers)]


def _line(row: ResultRow, answers: bool) -> list[Any]:
    spans = row.spans
    status, where, load = row.standing, row.where or Place(), row.machine_load
    on_cpu = (row.environment or {}).get("device") == "cpu"
    values: list[Any] = [row.model, row.family, row.sample, row.sequence, row.repeat, row.phase]
    values += [_group(row), row.cached]
    values += [row.forced, row.mode, row.pixels or "exact", row.stop, row.error or ""]
    values += [status.certificate or None, row.truth or {}]
    values += [backend_of(row), asked_of(row), device_of(row), shared_of(row)]
    values += [getattr(where, name) or "" for name in PLACES]
    values += [row.off_script is True, (row.extent and row.extent.ran) or ""]
    values += [row.window or "", row.split or str(COUNT_SPLIT), row.perturb or ""]
    values += _choice(row)
    values += [row.size, row.batch_id or "", row.batch_cached or 0]
    values += [status.state, ", ".join(status.missing)]
    values += [span and span.source for span in spans.values()]
    values += [span and span.ms for span in spans.values()]
    values.append(spans["vision"] and spans["vision"].original_ms)
    values += [getattr(row, name) for name in NUMBERS[len(SPANS) + 1 :]]
    values.append(load.cpu_ms if load and on_cpu and row.size == 1 else None)
    values += [getattr(load, name, None) for name in LOAD]
    if answers:
        values += [getattr(row, name) or "" for name in TEXTS]
        values.append(np.asarray(row.token_ms or (), dtype=np.float64))
    return values


def _choice(row: ResultRow) -> list[Any]:
    """The values of CHOICES."""
    options, form, task = row.choices or (), row.choice_form or "letters", row.question_task or ""
    if not options:
        return [0, *[""] * (len(CHOICES) - 1)]
    places = dict(zip(letters(len(options)), options, strict=False))
    right = row.right_letter if row.right_letter in places else ""
    known = [len(options), form, task, right or "", places.get(right or "", "")]
    if row.error:
        return [*known, "", "", ""]
    choice = read_choice(row.text or "", options, form, task)
    judged = ("yes" if choice == right else "no") if right else ""
    return [*known, choice, likeliest(row.letter_logprobs or None, len(options)), judged]


def _group(row: ResultRow) -> Group:
    if row.phase == "warmup":
        return "warm-up"
    if row.cold:
        return "cold"
    if row.paused_ms:
        return "after a pause"
    return IN_A_BATCH if row.size > 1 else "measured"


def _labels(table: pd.DataFrame, ids: Sequence[str], titled: bool) -> pd.Series[str]:
    """The model, with what distinguishes it; fast pixels and the compiled step are always named."""
    models = _titles(table) if titled else table["model"].astype(str)
    own = table["model"].astype(str).str.contains(r"[@+]fast$")  # the name says so already
    models = models.mask((table["pixels"] == "fast") & ~own, models + " · fast pixels")
    models = models + _backend_names(table) + _input_names(table)
    pairs = table[["model", "number"]].drop_duplicates()
    if pairs["model"].duplicated().any():
        models = models + " · " + _run_names(table, ids)
    return models + _device_names(table)


def _input_names(table: pd.DataFrame) -> pd.Series[str]:
    """The suffix of each label for other event pictures than the usual ones, and for changes.

    A window is named if a whole run has it; windows of single records are not.
    """
    window, split, perturb = (table[name].astype(str) for name in ("window", "split", "perturb"))
    own = table.groupby("number")["window"].transform("nunique") > 1
    named = (" · window " + window).mask((window == "") | own, "")
    named = named + (" · split " + split).mask(split == str(COUNT_SPLIT), "")
    return named + (" · " + perturb).mask(perturb == "", "")


def _titles(table: pd.DataFrame) -> pd.Series[str]:
    """The models' titles, with the name where two models have one title."""
    titles: pd.Series[str] = table["title"].astype(str)
    shared = table.groupby("title")["model"].transform("nunique") > 1
    return titles.mask(shared, titles + " (" + table["model"] + ")")


def _backend_names(table: pd.DataFrame) -> pd.Series[str]:
    """The suffix of each label for the backend; empty if only the eager step or generate() ran.

    A failed result gets its model's backend, or "no answer" if the model had several.
    """
    import pandas as pd

    known = table[table["backend"] != ""].groupby(["model", "number"])["backend"].unique().to_dict()
    keys = zip(table["model"], table["number"], strict=True)
    names = [
        _backend_name(ran, [str(name) for name in known.get(key, ())])
        for key, ran in zip(keys, table["backend"], strict=True)
    ]
    return pd.Series(names, index=table.index, dtype="object")


def _backend_name(ran: str, every: Sequence[str]) -> str:
    """One suffix; `every`: all backends of the model in this run."""
    if not ran and len(every) > 1:
        return " · no answer"
    name = ran or "".join(every)
    return f" · {name}" if name == "compiled" or (name == "generate" and len(every) > 1) else ""


def _device_names(table: pd.DataFrame) -> pd.Series[str]:
    """The suffix of each label for the device: its type if there are several types, otherwise only
    whether it was shared.  So no mean contains times of two types of devices.

    A result without a known device gets its model's, or "no device" if the model had several.
    """
    import pandas as pd

    known = table[table["device"] != ""]
    types = known.groupby(["model", "number"])["device"].unique().to_dict()
    shared = dict(zip(known["device"], known["shared"], strict=True))
    suffixes = dict(zip(shared, shared, strict=True)) if len(shared) > 1 else shared
    keys = zip(table["model"], table["number"], strict=True)
    names = [
        _device_name(here, [str(name) for name in types.get(key, ())], suffixes)
        for key, here in zip(keys, table["device"], strict=True)
    ]
    return pd.Series(names, index=table.index, dtype="object")


def _device_name(here: str, every: Sequence[str], suffixes: Mapping[str, str]) -> str:
    """One suffix; `every`: all types of devices of the model in this run."""
    if not here and len(every) > 1:
        return " · no device"
    name = suffixes.get(here or "".join(every), "")
    return f" · {name}" if name else ""


def _run_names(table: pd.DataFrame, ids: Sequence[str]) -> pd.Series[str]:
    """The run's id of each line, numbered if one run was given twice."""
    names = [f"{i} ({n + 1})" if list(ids).count(i) > 1 else i for n, i in enumerate(ids)]
    found: pd.Series[str] = table["number"].map(dict(enumerate(names)))
    return found


def labels(table: pd.DataFrame) -> list[str]:
    """The labels in the order of their first result.  A label with only warm-up runs is left out if
    its model has other labels, because a worker may warm up and then answer nothing."""
    asked = table[table["phase"] != "warmup"]
    names, models = set(asked["label"]), set(zip(asked["model"], asked["number"], strict=True))
    every = table[["label", "model", "number"]].drop_duplicates("label")
    lines = every.itertuples(index=False, name=None)
    return [
        str(label)
        for label, model, number in lines
        if label in names or (model, number) not in models
    ]


def perturbed_alike(table: pd.DataFrame, a: str, b: str) -> bool:
    """Whether the inputs of two labels had the same changes, so that pairs of them compare models.
    A label never has two."""
    sides = [set(table.loc[table["label"] == label, "perturb"]) for label in (a, b)]
    return sides[0] == sides[1]


def devices(table: pd.DataFrame) -> dict[str, str]:
    """The type of device of each of labels(), "" if not known; a label never has two."""
    known = table[table["device"] != ""].drop_duplicates("label")
    types = dict(zip(known["label"], known["device"], strict=True))
    return {label: str(types.get(label, "")) for label in labels(table)}


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """The results that means use: answered, not in a batch, cold, warm-up or after a pause."""
    return table[(table["group"] == "measured") & (table["error"] == "")]
