"""The results of runs as one pandas table: one line per result, one column per value.

Token ids and spans stay on disk: Run.row reads a row by its `offset`.  Times are milliseconds, NaN
if not measured; a failed result has an error and no figures.

A lens selects measured results at natural, first-min(N) or forced lengths.  Shorter answers take
less time, so the lens "first" cuts all answers to a sample, forced ones too, to the length of the
shortest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from engine import palette
from engine.analysis.answer_reading import likeliest, read_choice
from engine.analysis.statistics import cluster_of
from engine.machine.load import MachineLoad
from engine.media_options import COUNT_SPLIT
from engine.quoting import count
from engine.storage.result_rows import SPANS, ResultRow
from engine.storage.run_store import Run
from engine.types import SERVER

if TYPE_CHECKING:
    import pandas as pd

Group = Literal["measured", "in a batch", "cold", "warm-up", "after a pause"]
LensName = Literal["natural", "first", "forced"]
LENSES: tuple[LensName, ...] = ("natural", "first", "forced")
IN_A_BATCH: Group = "in a batch"
GROUPS: tuple[Group, ...] = ("measured", IN_A_BATCH, "cold", "warm-up", "after a pause")
TEXTS = ("text", "reference", "prompt")
SEPARATOR = " · "  # of the parts of a label; a chart begins a line after it
# Values that the row has under the same name.
OF_ROWS = ("model", "family", "sample", "sequence", "repeat", "phase", "cached", "forced", "mode",
           "stop", "truth", "window", "split", "perturb", "batch", "device",
           "shared")  # fmt: skip
NUMBERS_OF_ROWS = ("ttft_ms", "tpot_ms", "tokens_per_s", "total_ms", "uncached_total_ms",
                   "unaccounted_ms", "new_tokens", "context_tokens", "batch_ms",
                   "batch_tokens")  # fmt: skip
NUMBERS = (*(f"{name}_ms" for name in (*SPANS, SERVER)), "vision_original_ms", *NUMBERS_OF_ROWS)
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
    label       the model's name, or with `titled` its title; with the backend if it is
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
    cluster     the sequence, or a name of its own for a sample without one
    verified    the certificate that covers the result, or None
    standing    "verified", "not covered" or "unverified"
    missing     what is not covered; of a verified result the timing checks that stayed open
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

    titles = {one.name: one.label for one in run.header.models}
    left_out = () if answers else (*TEXTS, "token_ms")
    names = [name for name in _record(run, "", 0, NO_ANSWER) if name not in left_out]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for offset, row in run.results():
        record = _record(run, titles.get(row.model, row.model), offset, row)
        for name, values in columns.items():
            values.append(record[name])
    table = pd.DataFrame(columns, dtype=object).infer_objects()
    return table.astype(dict.fromkeys((*NUMBERS, *LOADS), "float64"))


def join(
    tables: Sequence[pd.DataFrame], names: Sequence[str], titled: bool = False
) -> pd.DataFrame:
    """Concatenates tables of one(); `names` distinguish runs that have the same model.  `titled`:
    labels for people; other programs and the command line get the models' names."""
    import pandas as pd

    numbered = [table.assign(number=number) for number, table in enumerate(tables)]
    filled = [table for table in numbered if len(table)] or numbered[:1]
    table = filled[0] if len(filled) == 1 else pd.concat(filled, ignore_index=True)
    bare, place = _labels(table, names, titled)
    return table.assign(bare=bare, label=bare + (SEPARATOR + place).mask(place == "", ""))


def _record(run: Run, title: str, offset: int, row: ResultRow) -> dict[str, Any]:
    spans, load = row.spans, row.machine_load
    spans |= {SERVER: row.served.spans[0] if row.served else None}
    groups: dict[Group, bool] = {
        "warm-up": row.phase == "warmup",
        "cold": bool(row.cold),
        "after a pause": bool(row.paused_ms),
        IN_A_BATCH: row.batch > 1,
        "measured": True,
    }
    alone_on_cpu = row.batch == 1 and row.environment.get("device") == "cpu"
    return {
        "run": run.id,
        "number": 0,
        "offset": offset,
        "title": title,
        **{name: getattr(row, name) for name in (*OF_ROWS, *NUMBERS_OF_ROWS)},
        "cluster": cluster_of(row.sequence, row.sample),
        "error": row.error or "",
        "group": next(group for group, of_row in groups.items() if of_row),
        "verified": row.verified,
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
        "token_ms": np.asarray((row.served or row).token_ms or (), dtype=np.float64),
    }


def _choice(row: ResultRow) -> dict[str, Any]:
    if not row.choices:
        return {"choices": 0} | dict.fromkeys(CHOICES[1:], "")
    form, task = row.choice_form or "letters", row.question_task
    places = dict(zip(ascii_uppercase, row.choices, strict=False))
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


def _labels(
    table: pd.DataFrame, ids: Sequence[str], titled: bool
) -> tuple[pd.Series[str], pd.Series[str]]:
    """The model with what distinguishes it, and its device; the compiled step is always named.

    A window is named if a whole run has it; windows of single records are not.  Devices are named
    if there are several types, otherwise only whether the device was shared: so no mean contains
    times of two types of devices.
    """
    model = table["model"].astype(str)
    names = model
    if titled:
        title = table["title"].astype(str)
        shared_titles = table.groupby("title")["model"].transform("nunique") > 1
        names = title.mask(shared_titles, title + " (" + model + ")")

    backend, several = _of_model(table, "backend", "no answer")
    named = backend.isin(["compiled", "no answer"]) | ((backend == "generate") & several)
    names = names + (SEPARATOR + backend).where(named, "")

    window, split, perturb = (table[name].astype(str) for name in ("window", "split", "perturb"))
    own = table.groupby("number")["window"].transform("nunique") > 1
    names = names + (SEPARATOR + "window " + window).mask((window == "") | own, "")
    names = names + (SEPARATOR + "split " + split).mask(split == str(COUNT_SPLIT), "")
    names = names + (SEPARATOR + perturb).mask(perturb == "", "")

    if table[["model", "number"]].drop_duplicates()["model"].duplicated().any():
        runs = [f"{i} ({n + 1})" if list(ids).count(i) > 1 else i for n, i in enumerate(ids)]
        names = names + SEPARATOR + table["number"].map(dict(enumerate(runs)))

    device, _ = _of_model(table, "device", "no device")
    known = table[table["device"] != ""]
    words = dict(zip(known["device"], known["shared"], strict=True))
    words = dict(zip(words, words, strict=True)) if len(words) > 1 else words
    return names, device.map(words | {"no device": "no device"}).fillna("").astype(str)


def _of_model(
    table: pd.DataFrame, column: str, several: str
) -> tuple[pd.Series[str], pd.Series[bool]]:
    """Each result's value, and whether its model has several in this run.  A failed result has no
    value: it gets its model's, or `several`."""
    values = table[column].astype(object).mask(table[column] == "")
    by_model = values.groupby([table["model"], table["number"]])
    many = by_model.transform("nunique") > 1
    others = by_model.transform("first").fillna("").mask(many, several)
    return values.fillna(others), many


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


def tones(table: pd.DataFrame) -> dict[str, str]:
    """The colour of each of labels(), named as in palette.tones."""
    families = dict(zip(table["label"], table["family"].astype(str), strict=True))
    return palette.toned({label: families[label] for label in labels(table)})


def perturbed_alike(table: pd.DataFrame, a: str, b: str) -> bool:
    """Whether the inputs of two labels had the same changes, so that pairs of them compare models.
    A label never has two."""
    sides = [set(table.loc[table["label"] == label, "perturb"]) for label in (a, b)]
    return sides[0] == sides[1]


def answered(table: pd.DataFrame) -> pd.DataFrame:
    """The answers of the measured phase, of batches, cold and paused ones too."""
    return table[(table["phase"] == "measured") & (table["error"] == "")]


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """The results that means use: answered, not in a batch, cold, warm-up or after a pause."""
    return table[(table["group"] == "measured") & (table["error"] == "")]


def of_both(lines: pd.DataFrame, a: str, b: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The results of two labels for the samples that both have."""
    one, other = (lines[lines["label"] == label] for label in (a, b))
    shared = set(one["sample"]) & set(other["sample"])
    return one[one["sample"].isin(shared)], other[other["sample"].isin(shared)]


@dataclass(frozen=True)
class Lens:
    table: pd.DataFrame
    note: str


def look(table: pd.DataFrame, name: LensName) -> Lens:
    """The measured results that the lens selects; the table may be empty."""
    lines = measured(table)
    forced = lines["forced"].astype(bool)
    if name == "natural":
        note = "Natural lengths: each answer ends when its model ends it, or at the limit."
        return Lens(lines[~forced], note)
    if name == "forced":
        forced_results = lines[forced]
        sizes = sorted({int(n) for n in forced_results["new_tokens"].dropna()})
        lengths = ", ".join(map(str, sizes)) or "no"
        note = f"Forced lengths: results of {lengths} tokens; the end-of-text id is ignored."
        return Lens(forced_results, note)
    return _first(lines)


def _first(lines: pd.DataFrame) -> Lens:
    """Each answer up to token N, the length of the shortest answer to the sample.  A sample with
    perturbed inputs is another sample."""
    # A model of a run whose results have several labels answers each sample under one of them.
    lines = lines.assign(asked=lines["sample"] + "\n" + lines["perturb"])
    whole = lines[["model", "number", "perturb"]].drop_duplicates().groupby("perturb").size()
    timed = lines["token_ms"].map(len) >= lines["new_tokens"]  # a time of each token is known
    answered = lines[(lines["new_tokens"] > 0) & timed]
    models = answered[["asked", "model", "number"]].drop_duplicates().groupby("asked").size()
    shared = answered[answered["asked"].map(models) == answered["perturb"].map(whole)]
    least = shared.groupby("asked")["new_tokens"].min()
    cut = shared.assign(new_tokens=shared["asked"].map(least)).drop(columns="asked")
    samples = cut["sample"].nunique()
    note = f"The first min(N) tokens of each sample, over {samples:,} samples."
    if dropped := len(lines) - len(cut):
        note += f" {count(dropped, 'result')} left out: not every model answered these samples."
    return Lens(_cut(cut), note)


def _cut(lines: pd.DataFrame) -> pd.DataFrame:
    """Times of the first `new_tokens` tokens; the run ends with the last of them."""
    times = lines["token_ms"].tolist()
    counts = lines["new_tokens"].astype(int).tolist()
    short = [ms[:n] for ms, n in zip(times, counts, strict=True)]
    first = np.array([ms[0] for ms in short], dtype=np.float64)
    last = np.array([ms[-1] for ms in short], dtype=np.float64)
    steps = last - first
    gaps = np.array(counts, dtype=np.float64) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        tpot = np.where(gaps > 0, steps / gaps, np.nan)
        rate = np.where(steps > 0, 1000 * gaps / steps, np.nan)
    stages = lines[["load_ms", "preprocess_ms", "vision_ms"]].sum(axis=1)
    decode = lines["prefill_ms"] + steps
    return lines.assign(
        token_ms=short,
        steps_ms=steps,
        decode_ms=decode,
        tpot_ms=tpot,
        tokens_per_s=rate,
        total_ms=last,
        uncached_total_ms=last + (lines["uncached_total_ms"] - lines["total_ms"]),
        unaccounted_ms=last - stages - decode,
    )
