"""ResultRow: one line of results.jsonl.  Only this module builds, writes and parses it.  It
contains the engine's own parts (Span, DecodeConfig, ...).  The order of the fields is the order of
the JSON keys; an absent key reads as its default.  Times are milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import Struct, ValidationError, convert, json, structs, to_builtins

from engine.errors import BadInput
from engine.machine.device import kind
from engine.machine.load import MachineLoad
from engine.media_options import COUNT_SPLIT
from engine.plain_files import Count, Difference, Name, Positive, Rate, Repeat, Time
from engine.storage.plan import Phase, Task
from engine.types import (
    STAGES,
    Batch,
    DecodeConfig,
    ModelInfo,
    RunRequest,
    RunResult,
    Served,
    Span,
    TensorSpec,
)

if TYPE_CHECKING:
    from engine.models.checkpoint import ModelEntry

# Of a check; refused: the model does not offer what the check is about, so no run does it.
Outcome = Literal["passed", "tie", "failed", "unresolved", "skipped", "refused"]
PASSED = ("passed", "tie")
SHOWN = 12  # characters of a certificate's hash that name it
Spans = dict[str, Span | None]


class AskedAndRan(Struct, frozen=True):
    asked: str | None = None
    ran: str | None = None


class Place(Struct, frozen=True):
    """The worker of a cluster that answered, and what it shared with other workers."""

    node: str | None = None
    host: str | None = None
    address: str | None = None
    device: str | None = None
    type: str | None = None
    actor: str | None = None
    pid: int | None = None
    shares: tuple[str, ...] = ()


class Standing(Struct, frozen=True):
    """Whether a certificate covers a result; `missing`: what the closest one does not cover, or
    which timing checks of a covering one stayed open.  Of a server: how long ago it was proved, or
    what was found instead."""

    state: Literal["verified", "not covered", "unverified", "proved", "disproved"]
    certificate: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return (self.certificate or "")[:SHOWN]

    @property
    def words(self) -> str:
        """What is proved, such as "same answer as generate(), timing verified" or "unverified"."""
        if self.state == "not covered":
            return f"not covered: {', '.join(self.missing)}"
        if self.state == "unverified":
            return self.state
        if self.state == "proved":
            return f"the model it says, proved {', '.join(self.missing)}"
        if self.state == "disproved":
            return "not the checkpoint as published"
        return "same answer as generate()" + ("" if self.missing else ", timing verified")

    @property
    def open_timing(self) -> str:
        """What is not proved of a verified result's times, as a sentence; or ""."""
        if self.state != "verified" or not self.missing:
            return ""
        return f"Not resolved on the verified samples: {', '.join(self.missing)}."


UNVERIFIED = Standing("unverified")


class ResultRow(Struct, frozen=True, kw_only=True):
    """One model's answer to one sample, or its error, and its place in a run.  In a batch, most
    times are measured for the whole batch only: they are in the fields that begin with "batch", and
    the fields for one sample are None."""

    model: Name
    family: str | None = None
    checkpoint: str | None = None
    revision: str | None = None
    digest: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    shows: str | None = None  # the kind of input; `shown` says which
    identity: dict[str, Any] | None = None
    sample: Name
    prompt: str | None = None
    text: str | None = None
    token_ids: tuple[Count, ...] | None = None
    new_tokens: Count | None = None
    stop: str | None = None
    context_tokens: Count | None = None
    mode: str | None = None
    cache: str | None = None
    frames: str | None = None
    shown: str | None = None
    decode_config: DecodeConfig = DecodeConfig()
    token_limit: Count | None = None  # lower than requested if the context has no room for more
    backend: AskedAndRan = AskedAndRan()
    cold: bool | None = None
    stages: Spans | None = None
    prefill: Span | None = None
    steps: Span | None = None
    ttft_ms: Time | None = None
    tpot_ms: Time | None = None
    tokens_per_s: Rate | None = None
    total_ms: Time | None = None
    uncached_total_ms: Difference | None = None
    unaccounted_ms: Difference | None = None
    token_ms: tuple[Time, ...] | None = None
    text_ends: tuple[Count, ...] | None = None
    tensors: tuple[TensorSpec, ...] = ()
    notes: tuple[str, ...] = ()
    environment: dict[str, str | int | float | bool | None] = {}
    verified: str | None = None  # the certificate that covers the result
    batch: Positive = 1  # samples that were answered together
    error: str | None = None
    extent: AskedAndRan = AskedAndRan()
    # Of pictures drawn from raw events, and what was changed; "" for none.
    window: str = ""
    split: str = str(COUNT_SPLIT)
    perturb: str = ""
    letter_logprobs: dict[str, float] | None = None  # of each option's letter as the first token
    off_script: bool | None = None
    machine_load: MachineLoad | None = None
    standing: Standing = UNVERIFIED
    batch_id: str | None = None
    batch_stages: Spans | None = None
    batch_prefill: Span | None = None
    batch_steps: Span | None = None
    batch_ms: Time | None = None
    batch_tokens: Count | None = None
    batch_cached: Count | None = None
    batch_tokens_per_s: Rate | None = None
    batch_samples_per_s: Rate | None = None
    # The place in the run.
    sequence: str = ""
    reference: str = ""
    truth: dict[str, str] = {}
    choices: tuple[str, ...] = ()  # of multiple-choice questions, like the next three
    choice_form: str = ""
    right_letter: str = ""
    question_task: str = ""
    repeat: Repeat
    phase: Phase
    batch_asked: Count | None = None
    paused_ms: Time | None = None
    at: str | None = None
    where: Place | None = None  # on a cluster
    served: Served | None = None

    @classmethod
    def parse(cls, value: Mapping[str, Any] | bytes) -> Self:
        """A row from its JSON object or its line; raises one of JSON_FAULTS otherwise."""
        try:
            row = json.decode(value, type=cls) if isinstance(value, bytes) else convert(value, cls)
        except BadInput as error:  # of DecodeConfig
            raise ValidationError(str(error)) from error
        row._check()
        return row

    @classmethod
    def from_result(cls, result: RunResult, standing: Standing = UNVERIFIED) -> Self:
        """Every figure as types.RunResult defines it; placed() adds its place in a run."""
        request, model, answer = result.request, result.model, result.generation
        known = None if result.served else True  # a server tells no ids
        found = _of_request(request) | {
            **{name: getattr(model, name) for name in _OF_MODELS},
            **{name: getattr(result, name) for name in _OF_RESULTS},
            **{name: getattr(answer, name) for name in ("text", "stop")},
            **{name: known and getattr(answer, name) for name in ("token_ids", "token_ms")},
            "model": model.name,
            "identity": identity(model),
            "context_tokens": answer.prompt_tokens,
            "cache": request.how.cache,
            "frames": request.how.frames,
            "decode_config": request.how.decode,
            "backend": AskedAndRan(request.how.decode.backend, result.backend),
            **_times(result, ""),
            "text_ends": answer.text_ends or None,
            "environment": dict(result.environment),
            "verified": standing.certificate if standing.state == "verified" else None,
            "extent": AskedAndRan(request.how.extent, result.extent),
            "letter_logprobs": dict(result.letter_logprobs or {}) or None,
            "standing": standing,
            "served": result.served,
        }
        if batch := result.batch:  # its figures replace the sample's
            found |= dict.fromkeys(NOT_OF_ONE) | {
                "stages": dict.fromkeys(STAGES),
                "batch": batch.size,
                "batch_id": batch.id,
                **_times(batch, "batch_"),
                "batch_ms": batch.total_ms,
                **{f"batch_{name}": getattr(batch, name) for name in _OF_A_BATCH},
            }
        return cls(**found)

    @classmethod
    def failed(cls, request: RunRequest, entry: ModelEntry | None, error: str) -> Self:
        """The row of a run without an answer; `entry` None: models.toml has no such name."""
        known: dict[str, Any] = {}
        if entry is not None:
            known = {"family": entry.family, "checkpoint": entry.checkpoint, "shows": entry.kind}
        return cls(**_of_request(request), **known, error=error)

    def placed(
        self, task: Task, batch_asked: int, paused_ms: float, at: str, where: Place | None
    ) -> Self:
        place = {"repeat": task.repeat, "phase": task.phase, "batch_asked": batch_asked}
        return structs.replace(self, **place, paused_ms=paused_ms, at=at, where=where)

    def _check(self) -> None:
        """Raises ValidationError for an answer without the figures that all code relies on."""
        if self.error:
            return
        needed = _NEEDED_IN_A_BATCH if self.batch > 1 else _NEEDED_ALONE
        for name in needed if self.served is None else _NEEDED_OF_A_SERVER:
            if getattr(self, name) is None:
                raise ValidationError(f"It is an answer and has no `{name}`")
        for name in ("token_ids", "token_ms", "text_ends"):
            found = getattr(self, name)
            if found is not None and len(found) != self.new_tokens:
                counts = f"`new_tokens` is {self.new_tokens} and `{name}` has {len(found)}"
                raise ValidationError(counts)

    def as_dict(self) -> dict[str, Any]:
        """The JSON object.  A failure has no figures, a single sample no figures of a batch, and
        what only some rows have is left out of the others."""
        left_out = _OF_ANSWERS if self.error is not None else frozenset[str]()
        left_out = _OF_BATCHES if self.error is None and self.batch_id is None else left_out
        return {
            name: value
            for name, value in to_builtins(self, enc_hook=plain_value).items()
            if name not in left_out and (value or name not in _OF_SOME)
        }

    def printed(self) -> dict[str, Any]:
        """The JSON object of an answer outside a run, without what only a replay needs."""
        left_out = (*_OF_RUNS, "text_ends")
        return {name: value for name, value in self.as_dict().items() if name not in left_out}

    @property
    def task(self) -> Task:
        return Task(self.model, self.sample, self.repeat, self.phase)

    @property
    def spans(self) -> Spans:
        """The times of SPANS: the stages, and the two parts of decode."""
        return _spans(self.stages, self.prefill, self.steps)

    @property
    def batch_spans(self) -> Spans:
        """The times of SPANS of the whole batch."""
        return _spans(self.batch_stages, self.batch_prefill, self.batch_steps)

    @property
    def cached(self) -> bool:
        return any(span is not None and span.source == "cached" for span in self.spans.values())

    @property
    def shared(self) -> str:
        """What other workers used at the same time: "shared device and cores", or ""."""
        shares = self.where.shares if self.where else ()
        return f"shared {' and '.join(shares)}" if shares else ""

    @property
    def device(self) -> str:
        """The type of device.  A shared one is another type: its times include other work."""
        found = kind(self.environment) or (self.where and self.where.type) or ""
        return ", ".join(filter(None, (found, self.shared)))

    @property
    def ran(self) -> str:
        """The backend that decoded, "" without an answer."""
        return self.backend.ran or ("" if self.error else "eager")

    @property
    def forced(self) -> bool:
        return self.decode_config.min_new_tokens == self.decode_config.max_new_tokens


# Fields with the same name as in their source.
_OF_MODELS = ("family", "checkpoint", "revision", "digest", "dtype", "quantization", "shows")
_OF_CARDS = ("source", "headers", "device", "parameters", "stored_dtype", "tower", "visual_tokens",
             "images", "context_limit", "missing", "extra", "generation")  # fmt: skip
_OF_RESULTS = ("new_tokens", "shown", "cold", "ttft_ms", "tpot_ms", "tokens_per_s", "total_ms",
               "uncached_total_ms", "unaccounted_ms", "tensors", "notes", "off_script",
               "token_limit", "machine_load")  # fmt: skip
SPANS = (*STAGES, "prefill", "steps")  # of ResultRow.spans
_OF_FAILURES = ("model", "family", "checkpoint", "shows", "sample", "prompt", "mode",
                "window", "split", "perturb", "error")  # fmt: skip
_OF_SOME = ("text_ends", "letter_logprobs", "choices", "choice_form", "right_letter",
            "question_task", "where", "served")  # fmt: skip
_OF_RUNS = ("sequence", "reference", "truth", "choices", "choice_form", "right_letter",
            "question_task", "repeat", "phase", "batch_asked", "paused_ms", "at",
            "where")  # fmt: skip
_OF_ANSWERS = frozenset(ResultRow.__struct_fields__) - {*_OF_FAILURES, *_OF_RUNS}
_OF_BATCHES = frozenset(name for name in _OF_ANSWERS if name.startswith("batch_"))
_NEEDED_ALONE = ("new_tokens", "stages", "total_ms")
_NEEDED_OF_A_SERVER = ("stages", "total_ms")  # it may not tell its tokens
_NEEDED_IN_A_BATCH = ("batch_id", "batch_stages", "batch_ms", "batch_tokens", "batch_cached",
                      "new_tokens")  # fmt: skip
_OF_A_BATCH = ("tokens", "cached", "tokens_per_s", "samples_per_s")
# None in the row of a sample that was answered in a batch.
NOT_OF_ONE = ("prefill", "steps", "ttft_ms", "tpot_ms", "tokens_per_s", "total_ms",
              "uncached_total_ms", "unaccounted_ms", "token_ms")  # fmt: skip


def _spans(stages: Spans | None, prefill: Span | None, steps: Span | None) -> Spans:
    times = {name: (stages or {}).get(name) for name in STAGES}
    return times | {"prefill": prefill, "steps": steps}


def _of_request(request: RunRequest) -> dict[str, Any]:
    sample = request.sample
    return {
        "model": request.model,
        "prompt": request.prompt,
        "mode": request.how.mode,
        "sample": sample.id,
        "window": str(request.how.window_of(sample) or ""),
        "split": str(request.how.split),
        "perturb": request.how.perturbed,
        **{name: getattr(sample, name) for name in ("sequence", "reference", "choices")},
        "truth": dict(sample.truth),
        "choice_form": sample.choice_form if sample.choices else "",
        "right_letter": sample.answer,
        "question_task": sample.task,
        "repeat": 0,
        "phase": "measured",
    }


def _times(measured: RunResult | Batch, prefix: str) -> dict[str, Any]:
    return {
        f"{prefix}stages": {name: measured.span(name) for name in STAGES},
        f"{prefix}prefill": measured.span("decode.prefill"),
        f"{prefix}steps": measured.span("decode.steps"),
    }


def plain_value(value: object) -> str | float:
    """Converts a subclass of a plain type, such as torch's version, to that type."""
    if isinstance(value, str | float):
        return str(value) if isinstance(value, str) else float(value)
    raise NotImplementedError


def identity(model: ModelInfo) -> dict[str, Any]:
    """The parts of the model's card that the row itself does not have."""
    card = {name: getattr(model, name) for name in _OF_CARDS}
    lists = {name: list(value) for name, value in card.items() if isinstance(value, tuple)}
    return card | lists | {"tower": vars(model.tower) if model.tower else None}
