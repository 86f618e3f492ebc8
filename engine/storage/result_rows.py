"""ResultRow: one line of results.jsonl.  Only this module builds, writes and parses it.

The order of the fields is the order of the JSON keys.  A key that is absent, as in rows of earlier
versions, reads as None: not known.  Keys of later versions stay in the file and are not read.

Boundary: from RunResult to typed rows and plain JSON, and back; no file is read.  Times are
milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert, structs, to_builtins

from engine.machine.load import busy
from engine.storage.plan import Phase, Task
from engine.storage.schemas import (
    UNVERIFIED,
    Count,
    Difference,
    Lasting,
    Name,
    Plain,
    Positive,
    Rate,
    Repeat,
    Standing,
    Texts,
    Time,
    checked,
)
from engine.types import STAGES, Batch, ModelInfo, RunRequest, RunResult, Sample

if TYPE_CHECKING:
    from engine.models.checkpoint import ModelEntry

S = TypeVar("S", bound=Struct)


class StageTime(Struct, frozen=True):
    """A stage on the clock of its run or batch; types.Span defines the figures."""

    start_ms: Difference
    ms: Lasting
    source: str
    original_ms: Difference | None = None
    # Not set in older rows.
    cpu_ms: Difference | UnsetType | None = UNSET
    waited_ms: Difference | UnsetType | None = UNSET


StageTimes = dict[str, StageTime | None]


class TensorShape(Struct, frozen=True):
    """A tensor that passed from one stage to the next."""

    name: str
    shape: tuple[Count, ...]
    dtype: str
    bytes: Count


class Decoding(Struct, frozen=True):
    """How tokens were chosen."""

    max_new_tokens: Count | None = None
    min_new_tokens: Count | None = None
    temperature: Rate | None = None
    top_p: Rate | None = None
    seed: Count | None = None
    backend: str | None = None


class AskedAndRan(Struct, frozen=True):
    """What the request asked for, and what ran."""

    asked: str | None = None
    ran: str | None = None


class PrefixState(Struct, frozen=True):
    """What a run did with its prompt's prefix, which has so many tokens."""

    state: str
    tokens: Count


class LoadFigures(Struct, frozen=True):
    """How busy the machine was during a run; the reason if it was too busy, or ""."""

    began_s: Time
    wall_ms: Time
    cpu_ms: Time
    cores: Positive
    threads: Positive
    waited_ms: Time | None = None
    others: Rate | None = None
    steal: Rate | None = None
    runnable: Rate | None = None
    busy: str = ""


class Place(Struct, frozen=True):
    """The worker of a cluster that answered, and what it shared with other workers."""

    node: str | None = None
    host: str | None = None
    address: str | None = None
    device: str | None = None
    type: str | None = None
    actor: str | None = None
    pid: int | None = None
    shares: tuple[str, ...] | None = None


class AnswerRow(Struct, frozen=True, kw_only=True):
    """One model's answer to one sample, or its error, as printed by `compare`.

    In a batch, most times are measured for the whole batch only: they are in the fields that begin
    with "batch", and the fields for one sample are None.
    """

    model: Name
    family: str | None = None
    checkpoint: str | None = None
    revision: str | None = None
    digest: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    # The kind of input that the model is shown; `shown` says which.  Not set in older rows.
    shows: str | UnsetType | None = UNSET
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
    pixels: str | None = None
    shown: str | None = None
    decode_config: Decoding | None = None
    # Lower than requested if the context has no room for more; not set in older rows.
    token_limit: Count | UnsetType | None = UNSET
    backend: AskedAndRan | None = None
    cold: bool | None = None
    stages: StageTimes | None = None
    prefill: StageTime | None = None
    steps: StageTime | None = None
    ttft_ms: Time | None = None
    tpot_ms: Time | None = None
    tokens_per_s: Rate | None = None
    total_ms: Time | None = None
    uncached_total_ms: Difference | None = None
    unaccounted_ms: Difference | None = None
    prefix: PrefixState | None = None
    token_ms: tuple[Time, ...] | None = None
    text_ends: tuple[Count, ...] | UnsetType = UNSET  # not set in older rows
    tensors: tuple[TensorShape, ...] | None = None
    notes: tuple[str, ...] | None = None
    environment: Plain | None = None
    verified: str | None = None
    batch: Positive | None = None
    error: str | None = None
    extent: AskedAndRan | None = None
    # Of pictures drawn from raw events, and what was changed; "" for none.  Not set in older rows.
    window: str | UnsetType | None = UNSET
    split: str | UnsetType | None = UNSET
    perturb: str | UnsetType | None = UNSET
    # Log-probability of each option's letter as the first token; set for lettered questions only.
    letter_logprobs: dict[str, float] | UnsetType | None = UNSET
    off_script: bool | None = None
    machine_load: LoadFigures | None = None
    standing: Standing = UNVERIFIED
    batch_id: str | None = None
    batch_stages: StageTimes | None = None
    batch_prefill: StageTime | None = None
    batch_steps: StageTime | None = None
    batch_ms: Time | None = None
    batch_tokens: Count | None = None
    batch_cached: Count | None = None
    batch_tokens_per_s: Rate | None = None
    batch_samples_per_s: Rate | None = None

    @classmethod
    def parse(cls, value: Mapping[str, Any] | bytes) -> Self:
        """A row from its JSON object or its line; raises one of JSON_FAULTS otherwise."""
        row = convert(checked(value) if isinstance(value, bytes) else value, cls)
        row._check()
        return row

    @classmethod
    def from_result(cls, result: RunResult, standing: Standing = UNVERIFIED) -> Self:
        """Every figure as types.RunResult defines it."""
        return cls(**_of_one(result, standing) | (_of_batch(result.batch) if result.batch else {}))

    @classmethod
    def failed(cls, request: RunRequest, entry: ModelEntry | None, error: str) -> Self:
        """The row of a run without an answer: an error and no figures.

        `entry` is None for a name that is not in models.toml.
        """
        return cls(
            model=request.model,
            family=entry.family if entry else None,
            checkpoint=entry.checkpoint if entry else None,
            shows=entry.kind if entry else None,
            sample=request.sample.id,
            prompt=request.prompt,
            mode=request.mode,
            pixels=request.pixels,
            window=str(request.window_of(request.sample) or ""),
            split=str(request.split),
            perturb=request.perturbed,
            error=error,
        )

    def _check(self) -> None:
        """Raises ValidationError for an answer without the figures that all code relies on."""
        if self.error:
            return
        for name in _NEEDED_IN_A_BATCH if self.size > 1 else _NEEDED_ALONE:
            if getattr(self, name) is None:
                raise ValidationError(f"It is an answer and has no `{name}`")
        for name in ("token_ids", "token_ms", "text_ends"):
            found = getattr(self, name)
            if found not in (None, UNSET) and len(found) != self.new_tokens:
                counts = f"`new_tokens` is {self.new_tokens} and `{name}` has {len(found)}"
                raise ValidationError(counts)

    def as_dict(self) -> dict[str, Any]:
        """The JSON object.  A failure has no figures, a single sample no figures of a batch."""
        left_out = _OF_BATCHES if self.batch_id is None else frozenset()
        left_out = left_out if self.error is None else _OF_ANSWERS
        found = to_builtins(self, enc_hook=_plain)
        return {name: one for name, one in found.items() if name not in left_out}

    def printed(self) -> dict[str, Any]:
        """The JSON object for a command's output, without what only a replay needs."""
        return {name: one for name, one in self.as_dict().items() if name != "text_ends"}

    @property
    def size(self) -> int:
        """How many samples were answered together."""
        return self.batch or 1

    @property
    def spans(self) -> StageTimes:
        """The times of SPANS: the stages, and the two parts of decode."""
        return _spans(self.stages, self.prefill, self.steps)

    @property
    def batch_spans(self) -> StageTimes:
        """The times of SPANS of the whole batch."""
        return _spans(self.batch_stages, self.batch_prefill, self.batch_steps)

    @property
    def cached(self) -> bool:
        """Whether a stage was read from the cache."""
        return any(span is not None and span.source == "cached" for span in self.spans.values())

    @property
    def forced(self) -> bool:
        """Whether the answer's length was forced."""
        how = self.decode_config or Decoding()
        return how.min_new_tokens is not None and how.min_new_tokens == how.max_new_tokens


class ResultRow(AnswerRow, frozen=True, kw_only=True):
    """One line of results.jsonl: an answer and its place in the run.  `where`: on a cluster."""

    sequence: str | None = None
    reference: str | None = None
    truth: Texts | None = None
    # Set for multiple-choice questions only.
    choices: tuple[str, ...] | UnsetType | None = UNSET
    choice_form: str | UnsetType | None = UNSET
    right_letter: str | UnsetType | None = UNSET
    question_task: str | UnsetType | None = UNSET
    repeat: Repeat
    phase: Phase
    batch_asked: Count | None = None
    paused_ms: Time | None = None
    at: str | None = None
    where: Place | None = None

    @classmethod
    def kept(
        cls,
        answer: AnswerRow,
        task: Task,
        sample: Sample,
        batch_asked: int,
        paused_ms: float,
        at: str,
        where: Place | None,
    ) -> Self:
        """An answer with its place in a run."""
        return cls(
            **structs.asdict(answer),
            sequence=sample.sequence,
            reference=sample.reference,
            truth=dict(sample.truth),
            choices=sample.choices or UNSET,
            choice_form=sample.choice_form if sample.choices else UNSET,
            right_letter=sample.answer or UNSET,
            question_task=sample.task or UNSET,
            repeat=task.repeat,
            phase=task.phase,
            batch_asked=batch_asked,
            paused_ms=paused_ms,
            at=at,
            where=where,
        )

    def as_dict(self) -> dict[str, Any]:
        found = super().as_dict()
        if self.where is None:
            del found["where"]
        return found

    @property
    def task(self) -> Task:
        return Task(self.model, self.sample, self.repeat, self.phase)


# Fields with the same name as in their source.
_OF_MODELS = ("family", "checkpoint", "revision", "digest", "dtype", "quantization", "shows")
_OF_CARDS = ("source", "headers", "device", "parameters", "stored_dtype", "tower", "visual_tokens",
             "images", "context_limit", "missing", "extra", "generation")  # fmt: skip
_OF_REQUESTS = ("prompt", "mode", "cache", "frames", "pixels")
_OF_RESULTS = ("new_tokens", "shown", "cold", "ttft_ms", "tpot_ms", "tokens_per_s", "total_ms",
               "uncached_total_ms", "unaccounted_ms", "notes", "off_script",
               "token_limit")  # fmt: skip
SPANS = (*STAGES, "prefill", "steps")  # of AnswerRow.spans
_OF_FAILURES = ("model", "family", "checkpoint", "shows", "sample", "prompt", "mode", "pixels",
                "window", "split", "perturb", "error")  # fmt: skip
_OF_ANSWERS = frozenset(AnswerRow.__struct_fields__) - set(_OF_FAILURES)
_OF_BATCHES = frozenset(n for n in AnswerRow.__struct_fields__ if n.startswith("batch_"))
_NEEDED_ALONE = ("new_tokens", "stages", "total_ms")
_NEEDED_IN_A_BATCH = (
    *("batch_id", "batch_stages", "batch_ms", "batch_tokens", "batch_cached", "new_tokens"),
)
# None in the row of a sample that was answered in a batch.
NOT_OF_ONE = ("prefill", "steps", "ttft_ms", "tpot_ms", "tokens_per_s", "total_ms",
              "uncached_total_ms", "unaccounted_ms", "token_ms")  # fmt: skip


def _spans(
    stages: StageTimes | None, prefill: StageTime | None, steps: StageTime | None
) -> StageTimes:
    times = {name: (stages or {}).get(name) for name in STAGES}
    return times | {"prefill": prefill, "steps": steps}


def _of_one(result: RunResult, standing: Standing) -> dict[str, Any]:
    request, model, answer, load = (
        result.request,
        result.model,
        result.generation,
        result.machine_load,
    )
    return {
        **{name: getattr(model, name) for name in _OF_MODELS},
        **{name: getattr(request, name) for name in _OF_REQUESTS},
        **{name: getattr(result, name) for name in _OF_RESULTS},
        "model": model.name,
        "identity": identity(model),
        "sample": request.sample.id,
        "text": answer.text,
        "token_ids": answer.token_ids,
        "stop": answer.stop,
        "context_tokens": answer.prompt_tokens,
        "decode_config": _copy(Decoding, request.decode),
        "backend": AskedAndRan(request.decode.backend, result.backend),
        "stages": {name: _stage(result, name) for name in STAGES},
        "prefill": _stage(result, "decode.prefill"),
        "steps": _stage(result, "decode.steps"),
        "prefix": _copy(PrefixState, result.prefix) if result.prefix else None,
        "token_ms": answer.token_ms,
        "text_ends": answer.text_ends or UNSET,
        "tensors": tuple(_copy(TensorShape, spec) for spec in result.tensors),
        "environment": dict(result.environment),
        "verified": standing.certificate if standing.state == "verified" else None,
        "batch": 1,
        "extent": AskedAndRan(request.extent, result.extent),
        "window": str(request.window_of(request.sample) or ""),
        "split": str(request.split),
        "perturb": request.perturbed,
        "letter_logprobs": dict(result.letter_logprobs) if result.letter_logprobs else UNSET,
        "machine_load": load and _copy(LoadFigures, load, busy=busy(load)),
        "standing": standing,
    }


def _of_batch(batch: Batch) -> dict[str, Any]:
    """The batch's figures, which replace the sample's."""
    return dict.fromkeys(NOT_OF_ONE) | {
        "stages": dict.fromkeys(STAGES),
        "batch": batch.size,
        "batch_id": batch.id,
        "batch_stages": {name: _stage(batch, name) for name in STAGES},
        "batch_prefill": _stage(batch, "decode.prefill"),
        "batch_steps": _stage(batch, "decode.steps"),
        "batch_ms": batch.total_ms,
        "batch_tokens": batch.tokens,
        "batch_cached": batch.cached,
        "batch_tokens_per_s": batch.tokens_per_s,
        "batch_samples_per_s": batch.samples_per_s,
    }


def _stage(timed: RunResult | Batch, name: str) -> StageTime | None:
    """None for a stage that was not measured."""
    span = timed.span(name)
    return None if span is None else _copy(StageTime, span)


def _copy(form: type[S], source: object, **more: Any) -> S:
    """A struct with the fields of the same names, and `more`."""
    names = [name for name in form.__struct_fields__ if name not in more]
    return form(**{name: getattr(source, name) for name in names}, **more)


def _plain(value: object) -> str | float:
    """Converts a subclass of a plain type, such as torch's version, to that type."""
    if isinstance(value, str | float):
        return str(value) if isinstance(value, str) else float(value)
    raise NotImplementedError


def identity(model: ModelInfo) -> dict[str, Any]:
    """The parts of the model's card that the row itself does not have."""
    card = {name: getattr(model, name) for name in _OF_CARDS}
    lists = {name: list(value) for name, value in card.items() if isinstance(value, tuple)}
    return card | lists | {"tower": vars(model.tower) if model.tower else None}
