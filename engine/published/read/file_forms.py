"""The forms of published result files: the keys that identify each, and where its values are.

The schemas are described in docs/published-files.md.  File names are not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.published.read.record_types import Group, Part

IDS = ("token_ids", "output_tokens", "output_ids", "tokens")
TEXTS = ("output_text", "output", "text")
LOOKED_AT = 50  # rows whose keys identify a form


@dataclass(frozen=True)
class Answer:
    """Where a row has one model's answer.

    at: the key of the model's object, "" for the row itself.  prefix: the start of its keys in a
    row of several models; also: its keys without this start.  numbers: key in the row -> key in the
    record, None for every number of the model.  claimed: the model that it claims to be.  needs:
    the start of keys without which, in all rows, the file does not have this model.
    by_checkpoint: the key of the text may be the name of a checkpoint.
    """

    at: str = ""
    prefix: str = ""
    also: tuple[str, ...] = ()
    numbers: Mapping[str, str] | None = None
    ids: tuple[str, ...] = IDS
    texts: tuple[str, ...] = TEXTS
    claimed: str = ""
    needs: str = ""
    by_checkpoint: bool = False


@dataclass(frozen=True)
class Rows:
    """A list of rows.

    path: "" for where the form was recognised; "*" stands for the names of several models, also as
    the key of the answer.  figures: numbers of the row that belong to no model; flags: true or
    false.  names: keys of a sample's name before the usual ones.  known: if there are any, all
    other keys are noted as not read.
    """

    answers: Mapping[str, Answer]
    path: str = ""
    figures: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Keys:
    """The keys of a list of rows, of its values that are lists, and of the two models' objects."""

    names: frozenset[str]
    lists: frozenset[str]
    nested: frozenset[str]


@dataclass(frozen=True)
class Form:
    """A row of the table of forms.

    It is identified by any of the keys `top` of the file ("a.b" for nested ones), or by the keys of
    its rows.  nested: rows have an object per model; places: where the rows may be, "$" for the
    file itself.  pair: draft and target, by default the first two models of the rows.  stated:
    paths of summaries -> the model that they are of, "" for both; fields: (model, field) of keys of
    a summary that do not name their model.
    """

    group: Group
    rows: tuple[Rows, ...] = ()
    pair: tuple[str, str] | None = None
    stated: Mapping[str, str] = field(default_factory=dict)
    top: frozenset[str] = frozenset()
    known: Callable[[Keys], object] = lambda _: False
    nested: bool = False
    places: tuple[str, ...] = ("samples", "results")
    fields: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unit: str = "s"


_FOUR: dict[str, Part] = {
    "stage1_time": "load",
    "stage2_time": "preprocess",
    "stage3_time": "vision",
    "stage4_time": "decode",
    "total_time": "total",
}
_PARALLEL: dict[str, Part] = {
    "vision_time": "vision",
    "prefill_time": "prefill",
    "draft_time": "steps",
    "generation_time": "steps",
    "total_time": "total",
}
_BOTH = ("eventgpt", "videollava")
_ANYWHERE = ("samples", "results", "$")
_SHORT = ("egpt", "vl")
_NESTED = Rows({model: Answer(at=model) for model in _BOTH}, figures=("acceptance", "parallel"))
_STAGE_KEYS = {"stage4_time", "stage5_time", *_PARALLEL} - {"total_time"}
_PARALLEL_GROUP = Group("E", "parallel-4bit", _PARALLEL, has_stage_times=True)
_WALL: dict[str, Part] = {
    "prefill_ms": "prefill",
    "decode_ms": "steps",
    "total_ms": "total",
    "sd_decode_ms": "steps",
    "sd_total_ms": "total",
}
_SPECULATED: dict[str, Part] = {
    "prefill_ms": "prefill",
    "draft_ms": "steps",
    "decode_ms": "steps",
    "time_ms": "total",
}
_ESTIMATES = "text-only/estimates"
_PAIRS_GROUP = Group("F", "token-pairs", {"time": "total"})
_ADAPTED = "EventGPT's draft, through an adapter"
_MATCHES = ("matched_tokens", "compared_tokens", "acceptance_rate")
_FLAT_KEY = re.compile(r"(egpt|llava|videollava)_(time|stage\d_time|token_ids|memory_\w+)")


def _prefixed(prefix: str, *also: str) -> Answer:
    ids, texts = (tuple(f"{prefix}{key}" for key in keys) for keys in (IDS, TEXTS))
    return Answer(prefix=prefix, also=also, ids=ids, texts=texts)


def _flat(model: str) -> Answer:
    prefix = f"{model}_"
    return Answer(
        prefix=prefix,
        ids=(f"{prefix}token_ids",),
        texts=(model,),
        needs=prefix,
        by_checkpoint=model != "egpt",
    )


def _estimated(model: str) -> Answer:
    numbers = {f"{model}_time": "time", f"{model}_tokens": "tokens"}
    return Answer(numbers=numbers, ids=(), texts=(f"{model}_text",))


def _of_pair(model: str, claimed: str = "", needs: str = "") -> Answer:
    return Answer(
        numbers={f"{model}_time": "time"},
        ids=(f"{model}_tokens", f"{model}_token_ids"),
        texts=(f"{model}_text", f"{model}_output"),
        claimed=claimed,
        needs=needs,
    )


def _pairs(draft: str, target: str) -> Form:
    """F1, F2, F3: lists of ids per model and sample, with an adapter's draft in some files."""
    figures = ("acceptance_rate", "accepted_tokens", "total_compared", "c_ratio", "matched_tokens",
               "total_tokens", "consecutive_matches", "total_matches")  # fmt: skip
    answers = {
        draft: _of_pair(draft),
        "adapter": _of_pair("adapter", _ADAPTED, needs="adapter_tokens"),
        target: _of_pair(target),
    }
    return Form(
        _PAIRS_GROUP,
        (Rows(answers, figures=figures),),
        (draft, target),
        {"results": "", "summary": ""},
        known=lambda keys: keys.lists & {f"{draft}_tokens", f"{target}_tokens"},
        places=_ANYWHERE,
    )


def _speculated(start: str, claimed: str = "", **numbers: str) -> Answer:
    return Answer(
        numbers=numbers, ids=(f"{start}_tokens",), texts=(f"{start}_text",), claimed=claimed
    )


_FLAT_TIMES = ("vision_time", "prefill_time", "draft_time")  # of EventGPT
_METRICS_DRAFT = Answer(
    numbers={
        **{key: key for key in (*_FLAT_TIMES, "prefill_length", "draft_tokens")},
        "egpt_complete_time": "egpt_complete_time",
        "egpt_total_time": "total_time",
    },
    ids=("egpt_token_ids", "draft_tokens", "egpt_output_tokens"),
    texts=("egpt_text", "draft_text", "egpt_output_text"),
)
_METRICS_TARGET = Answer(
    numbers={
        f"vl_{key}": key
        for key in ("vision_time", "prefill_time", "generation_time", "total_time",
                    "prefill_length", "tokens")
    },
    ids=("vl_token_ids", "output_tokens", "vl_output_tokens"),
    texts=("vl_text", "output_text", "vl_output_text"),
)  # fmt: skip
_METRICS_FIGURES = (
    *(_METRICS_DRAFT.numbers or ()), *(_METRICS_TARGET.numbers or ()), "overlap_window",
    "theoretical_draft_tokens", "tokens_to_verify", "accepted_tokens", "estimated_acceptance_rate",
    "rejected_tokens", "acceptance_rate", "speedup", "ideal_speedup",
)  # fmt: skip
_METRICS_KEYS = frozenset(
    (*_METRICS_FIGURES, *_METRICS_DRAFT.ids, *_METRICS_DRAFT.texts, *_METRICS_TARGET.ids,
     *_METRICS_TARGET.texts, "id", "sample_id", "sample_idx", "sample", "question", "query")
)  # fmt: skip


def _is_metrics(keys: Keys) -> bool:
    mine = keys.names & set(_FLAT_TIMES)
    target = {f"vl_{key}" for key in _PARALLEL}
    return len(mine) == len(_FLAT_TIMES) or bool(mine and keys.names & target)


UNKNOWN = Group("?", "unknown")
FAILED = Form(Group("Z", "failed run (results empty, only errors)"))
NO_ROWS = Form(Group("Z", "no rows"))
# A file has the first form whose keys it has.
FORMS: tuple[Form, ...] = (
    # one object per sample with the keys of both models; either of the two others answered
    Form(
        Group(
            "A",
            "flat-3stage",
            {
                "stage1_time": "load",
                "stage2_time": "preprocess",
                "stage3_time": "decode",  # the vision tower inside generate(), with the decoding
                "time": "total",
            },
            has_stage_times=True,
            total_is_whole_run=True,
        ),
        (Rows({model: _flat(model) for model in ("egpt", "videollava", "llava")}),),
        known=lambda keys: any(map(_FLAT_KEY.fullmatch, keys.names)),
        places=("$",),
    ),
    Form(
        Group("B", "4stage-legacy", _FOUR, has_stage_times=True, total_is_whole_run=True),
        (
            *(Rows({one: Answer()}, f"{one}_results", names=("sample",)) for one in _BOTH),
            Rows({}, "speculative_decoding.per_sample", _MATCHES),
        ),
        _BOTH,
        {**{f"{model}_summary": model for model in _BOTH}, "speculative_decoding": ""},
        top=frozenset({"eventgpt_results", "videollava_results"}),
    ),
    # end-to-end times; "baseline" is the target alone
    Form(
        Group("G", "e2e-wallclock", _WALL),
        (
            Rows({"baseline": Answer(claimed="Video-LLaVA")}, "baseline_per_sample"),
            Rows({"*": Answer(claimed="Video-LLaVA, drafted for by *")}, "sd_per_sample.*"),
        ),
        stated={"stage_timing": "", "aggregate.*": "*"},
        top=frozenset({"baseline_per_sample", "sd_per_sample"}),
        unit="ms",
    ),
    Form(
        Group(
            "C",
            "1-vs-8-frames",
            {
                "stage12_time": "load+preprocess",
                "s3_time": "vision",
                "s4_time": "prefill",
                "s5_time": "steps",
                "total_time": "total",
            },
            has_stage_times=True,
            total_is_whole_run=True,
            fixed_length=True,
        ),
        tuple(Rows({one: Answer()}, f"{one}.samples", names=("sample",)) for one in _BOTH),
        _BOTH,
        {f"{model}.stats": model for model in _BOTH},
        top=frozenset({"eventgpt.samples", "videollava.samples"}),
    ),
    Form(
        Group("B'", "4stage-newest", _FOUR, has_stage_times=True, total_is_whole_run=True),
        (_NESTED,),
        _BOTH,
        {"summary": "", "speculative_decoding": ""},
        known=lambda keys: "stage4_time" in keys.nested or not keys.nested & _STAGE_KEYS,
        nested=True,
        places=("samples",),
    ),
    Form(
        Group(
            "D",
            "5stages",
            {**_FOUR, "stage4_time": "prefill", "stage5_time": "steps"},
            has_stage_times=True,
            total_is_whole_run=True,
            first_token_in_prefill=True,
        ),
        (_NESTED,),
        _BOTH,
        {"statistics": ""},
        known=lambda keys: keys.nested & {"stage4_time", "stage5_time"},
        nested=True,
    ),
    Form(
        _PARALLEL_GROUP,
        (_NESTED,),
        _BOTH,
        {"statistics": ""},
        known=lambda keys: keys.nested & _STAGE_KEYS,
        nested=True,
    ),
    # an early form of E
    Form(
        _PARALLEL_GROUP,
        (
            Rows(
                {
                    "eventgpt": _prefixed("egpt_", "draft_tokens", "draft_time"),
                    "videollava": _prefixed("vl_"),
                },
                figures=("acceptance", "parallel"),
            ),
        ),
        _BOTH,
        {"statistics": ""},
        known=lambda keys: "egpt_prefill_time" in keys.names,
    ),
    # stage times of both models in one flat row, and an assumed acceptance
    Form(
        Group("H", _ESTIMATES, _PARALLEL),
        (
            Rows(
                {"egpt": _METRICS_DRAFT, "vl": _METRICS_TARGET},
                figures=_METRICS_FIGURES,
                known=_METRICS_KEYS,
            ),
        ),
        _SHORT,
        {"statistics": "", "summary": ""},
        known=_is_metrics,
        places=_ANYWHERE,
        fields={"output_tokens": ("vl", "tokens")},
    ),
    # F4: speculative decoding of a few samples
    Form(
        Group("F", "token-pairs", _SPECULATED),
        (
            Rows(
                {
                    "egpt": _speculated(
                        "egpt_draft", egpt_prefill_ms="prefill_ms", egpt_draft_ms="draft_ms"
                    ),
                    "vl": _speculated(
                        "vl_output", vl_prefill_ms="prefill_ms", vl_time_ms="time_ms"
                    ),
                    "adapted": _speculated("adapted_draft", _ADAPTED),
                    "sd": _speculated(
                        "sd_output",
                        "Video-LLaVA, speculative decoding",
                        vl_verify_ms="verify_ms",
                        vl_decode_ms="decode_ms",
                        sd_time_ms="time_ms",
                    ),
                },
                figures=("*_ms", "speedup", "accepted_tokens", "acceptance_rate", "rejected_at"),
                flags=("output_matches",),
            ),
        ),
        _SHORT,
        {"summary": ""},
        known=lambda keys: (
            keys.names & {"sd_output_tokens", "adapted_draft_tokens", "vl_verify_ms"}
        ),
        unit="ms",
    ),
    _pairs("eventgpt", "videollava"),
    _pairs("draft", "target"),
    _pairs("egpt", "vl"),
    # texts, counts and an acceptance estimated from the texts; no token ids
    Form(
        Group("H", _ESTIMATES, {"time": "total"}),
        (
            Rows(
                {model: _estimated(model) for model in _SHORT},
                figures=("word_overlap", "char_similarity", "acceptance_estimate"),
            ),
        ),
        _SHORT,
        {"statistics": ""},
        known=lambda keys: keys.names & {"egpt_text", "vl_text", "acceptance_estimate"},
    ),
)


def form_of(value: Any) -> tuple[Form, str] | None:
    """The form and the path of the list where it was recognised, or None for another kind."""
    if isinstance(value, list):
        return _by_rows("$", value) or (None if value else (NO_ROWS, ""))
    if not isinstance(value, dict):
        return None
    inner = {f"{name}.{key}" for name, one in value.items() if isinstance(one, dict) for key in one}
    if found := next((form for form in FORMS if form.top & {*value, *inner}), None):
        return found, ""
    if value.get("results") == [] and value.get("errors"):
        return FAILED, ""
    lists = [name for name in ("samples", "results") if isinstance(value.get(name), list)]
    if known := next(filter(None, (_by_rows(name, value[name]) for name in lists)), None):
        return known
    beside = {"config", "statistics", "summary", "errors"} & value.keys()
    return (NO_ROWS, "") if beside and not all(value[name] for name in lists) else None


def _by_rows(place: str, rows: Sequence[Any]) -> tuple[Form, str] | None:
    some = [row for row in rows[:LOOKED_AT] if isinstance(row, dict)]
    lists = (key for row in some for key, inner in row.items() if isinstance(inner, list))
    models = (row[model] for row in some for model in _BOTH if isinstance(row.get(model), dict))
    keys = Keys(
        frozenset(key for row in some for key in row),
        frozenset(lists),
        frozenset(key for model in models for key in model),
    )
    for form in FORMS:
        fits = place in form.places and form.nested == bool(keys.nested)
        if fits and form.known(keys):
            return form, place
    return None
