"""The results of runs as one pandas table: one line per result, one column per value.

Token ids and spans stay on disk: Run.row reads a row by its `offset`.  Times are milliseconds, NaN
if not measured; a failed result has an error and no figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from engine.analysis.choice_reading import letters, likeliest, read_choice
from engine.machine.load import MachineLoad
from engine.media_options import COUNT_SPLIT
from engine.storage.result_rows import SPANS, ResultRow
from engine.storage.run_store import Run

if TYPE_CHECKING:
    import pandas as pd

Group = Literal["measured", "in a batch", "cold", "warm-up", "after a pause"]
IN_A_BATCH: Group = "in a batch"
GROUPS: tuple[Group, ...] = ("measured", IN_A_BATCH, "cold", "warm-up", "after a pause")
TEXTS = ("text", "reference", "prompt")
# Values that the row has under the same name.
OF_ROWS = ("model", "family", "sample", "sequence", "repeat", "phase", "cached", "forced", "mode",
           "pixels", "stop", "truth", "window", "split", "perturb", "batch", "device",
           "shared")  # fmt: skip
NUMBERS_OF_ROWS = ("ttft_ms", "tpot_ms", "tokens_per_s", "total_ms", "uncached_total_ms",
                   "unaccounted_ms", "new_tokens", "context_tokens", "batch_ms",
                   "batch_tokens")  # fmt: skip
NUMBERS = (*(f"{name}_ms" for name in SPANS), "vision_original_ms", *NUMBERS_OF_ROWS)
NO_ANSWER = ResultRow(model="", sample="", repeat=0, phase="measured")
LOAD = tuple(one.name for one in fields(MachineLoad) if one.name != "busy")
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

    seen, titles = set(), {one.name: one.label for one in run.header.models}
    left_out = () if answers else (*TEXTS, "token_ms")
    columns: dict[str, list[Any]] = {
        name: [] for name in _record(run, "", 0, NO_ANSWER) if name not in left_out
    }
    for offset, row in run.results():
        if row.task not in seen:  # a line may be there twice
            seen.add(row.task)
            record = _record(run, titles.get(row.model, row.model), offset, row)
            for name, values in columns.items():
                values.append(record[name])
    table = pd.DataFrame(columns, dtype=object).infer_objects()
    return table.astype(dict.fromkeys((*NUMBERS, *LOADS), "float64"))


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


def _record(run: Run, title: str, offset: int, row: ResultRow) -> dict[str, Any]:
    """The values of a row by column."""
    spans, load = row.spans, row.machine_load
    alone_on_cpu = row.batch == 1 and row.environment.get("device") == "cpu"
    return {
        "run": run.id,
        "number": 0,
        "offset": offset,
        "title": title,
        **{name: getattr(row, name) for name in (*OF_ROWS, *NUMBERS_OF_ROWS)},
        "error": row.error or "",
        "group": _group(row),
        "verified": row.standing.certificate or None,
        "standing": row.standing.state,
        "missing": ", ".join(row.standing.missing),
        "backend": row.ran,
        "backend_asked": row.backend.asked or "",
        **{name: getattr(row.where, name, None) or "" for name in PLACES},
        "off_script": row.off_script is True,
        "extent": row.extent.ran or "",
        **_choice(row),
        "batch_id": row.batch_id or "",
        "batch_cached": row.batch_cached or 0,
        **{f"{name}_source": span and span.source for name, span in spans.items()},
        **{f"{name}_ms": span and span.ms for name, span in spans.items()},
        "vision_original_ms": spans["vision"] and spans["vision"].original_ms,
        "cpu_ms": load.cpu_ms if load and alone_on_cpu else None,
        **{f"load_{name}": getattr(load, name, None) for name in LOAD},
        **{name: getattr(row, name) or "" for name in TEXTS},
        "token_ms": np.asarray(row.token_ms or (), dtype=np.float64),
    }


def _choice(row: ResultRow) -> dict[str, Any]:
    """The values of CHOICES."""
    if not row.choices:
        return {"choices": 0} | dict.fromkeys(CHOICES[1:], "")
    form, task = row.choice_form or "letters", row.question_task
    places = dict(zip(letters(len(row.choices)), row.choices, strict=False))
    right = row.right_letter if row.right_letter in places else ""
    choice = "" if row.error else read_choice(row.text or "", row.choices, form, task)
    judged = ("yes" if choice == right else "no") if right and not row.error else ""
    known = None if row.error else row.letter_logprobs
    return {
        "choices": len(row.choices),
        "choice_form": form,
        "question_task": task,
        "right_letter": right,
        "right_choice": places.get(right, ""),
        "choice": choice,
        "likeliest": likeliest(known, len(row.choices)),
        "right": judged,
    }


def _group(row: ResultRow) -> Group:
    if row.phase == "warmup":
        return "warm-up"
    if row.cold:
        return "cold"
    if row.paused_ms:
        return "after a pause"
    return IN_A_BATCH if row.batch > 1 else "measured"


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


def _with_others(table: pd.DataFrame, column: str) -> list[tuple[str, list[str]]]:
    """Per result the value, and all values of its model in this run; "" is not known."""
    known = table[table[column] != ""].groupby(["model", "number"])[column].unique().to_dict()
    keys = zip(table["model"], table["number"], strict=True)
    return [
        (str(here), [str(name) for name in known.get(key, ())])
        for key, here in zip(keys, table[column], strict=True)
    ]


def _backend_names(table: pd.DataFrame) -> pd.Series[str]:
    """The suffix of each label for the backend; empty if only the eager step or generate() ran.

    A failed result gets its model's backend, or "no answer" if the model had several.
    """
    import pandas as pd

    names = []
    for ran, every in _with_others(table, "backend"):
        name = ran or ("".join(every) if len(every) < 2 else "no answer")
        told = name in ("compiled", "no answer") or (name == "generate" and len(every) > 1)
        names.append(f" · {name}" if told else "")
    return pd.Series(names, index=table.index, dtype="object")


def _device_names(table: pd.DataFrame) -> pd.Series[str]:
    """The suffix of each label for the device: its type if there are several types, otherwise only
    whether it was shared.  So no mean contains times of two types of devices.

    A result without a known device gets its model's, or "no device" if the model had several.
    """
    import pandas as pd

    known = table[table["device"] != ""]
    shared = dict(zip(known["device"], known["shared"], strict=True))
    suffixes = dict(zip(shared, shared, strict=True)) if len(shared) > 1 else shared
    names = []
    for here, every in _with_others(table, "device"):
        several = not here and len(every) > 1
        name = "no device" if several else suffixes.get(here or "".join(every), "")
        names.append(f" · {name}" if name else "")
    return pd.Series(names, index=table.index, dtype="object")


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
