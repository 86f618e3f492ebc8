"""A run as one flat JSON object: what the command line prints and what runs are kept as.

Boundary: from RunResult to plain dicts and lists; no file is read.  Times are milliseconds.
"""

from __future__ import annotations

from typing import Any

from engine.machine.load import MachineLoad, busy
from engine.models.checkpoint import ModelEntry
from engine.storage.coverage import UNVERIFIED, Standing
from engine.types import STAGES, Batch, ModelInfo, RunRequest, RunResult, Span

# Null in the row of a sample that was answered in a batch.
NOT_OF_ONE = ("prefill", "steps", "ttft_ms", "tpot_ms", "tokens_per_s", "total_ms",
              "uncached_total_ms", "unaccounted_ms", "token_ms")  # fmt: skip


def row(result: RunResult, standing: Standing = UNVERIFIED) -> dict[str, Any]:
    """One object per sample and model; every figure as metrics define it.

    A sample of a batch has null for what was measured of all of them together: that stands in the
    fields that begin with "batch".
    """
    alone = _alone(result, standing)
    return alone | _batched(result.batch) if result.batch else alone


def _alone(result: RunResult, standing: Standing) -> dict[str, Any]:
    request, model, answer = result.request, result.model, result.generation
    return {
        "model": model.name,
        "family": model.family,
        "checkpoint": model.checkpoint,
        "revision": model.revision,
        "digest": model.digest,
        "dtype": model.dtype,
        "quantization": model.quantization,
        "identity": identity(model),
        "sample": request.sample.id,
        "prompt": request.prompt,
        "text": answer.text,
        "token_ids": list(answer.token_ids),
        "new_tokens": result.new_tokens,
        "stop": answer.stop,
        "context_tokens": answer.prompt_tokens,
        "mode": request.mode,
        "cache": request.cache,
        "frames": request.frames,
        "pixels": request.pixels,
        "shown": result.shown,
        "decode_config": vars(request.decode),
        "backend": {"asked": request.decode.backend, "ran": result.backend},
        "cold": result.cold,
        "stages": {name: stage(result.span(name)) for name in STAGES},
        "prefill": stage(result.span("decode.prefill")),
        "steps": stage(result.span("decode.steps")),
        "ttft_ms": result.ttft_ms,
        "tpot_ms": result.tpot_ms,
        "tokens_per_s": result.tokens_per_s,
        "total_ms": result.total_ms,
        "uncached_total_ms": result.uncached_total_ms,
        "unaccounted_ms": result.unaccounted_ms,
        "prefix": vars(result.prefix) if result.prefix else None,
        "token_ms": list(answer.token_ms),
        "tensors": [vars(spec) | {"shape": list(spec.shape)} for spec in result.tensors],
        "notes": list(result.notes),
        "environment": dict(result.environment),
        "verified": standing.certificate if standing.state == "verified" else None,
        "batch": 1,
        "error": None,
        "extent": {"asked": request.extent, "ran": result.extent},
        "off_script": result.off_script,
        "machine_load": machine_load(result.machine_load),
        "standing": standing.row(),
    }


def _batched(batch: Batch) -> dict[str, Any]:
    """The batch's figures."""
    return dict.fromkeys(NOT_OF_ONE) | {
        "stages": dict.fromkeys(STAGES),
        "batch": batch.size,
        "batch_id": batch.id,
        "batch_stages": {name: stage(batch.span(name)) for name in STAGES},
        "batch_prefill": stage(batch.span("decode.prefill")),
        "batch_steps": stage(batch.span("decode.steps")),
        "batch_ms": batch.total_ms,
        "batch_tokens": batch.tokens,
        "batch_cached": batch.cached,
        "batch_tokens_per_s": batch.tokens_per_s,
        "batch_samples_per_s": batch.samples_per_s,
    }


def identity(model: ModelInfo) -> dict[str, Any]:
    """The model's card: what of it is not in the row itself."""
    return {
        "source": model.source,
        "headers": model.headers,
        "device": model.device,
        "parameters": model.parameters,
        "stored_dtype": model.stored_dtype,
        "tower": vars(model.tower) if model.tower else None,
        "visual_tokens": model.visual_tokens,
        "images": model.images,
        "context_limit": model.context_limit,
        "missing": None if model.missing is None else list(model.missing),
        "extra": None if model.extra is None else list(model.extra),
        "generation": list(model.generation),
    }


def machine_load(load: MachineLoad | None) -> dict[str, Any] | None:
    """How busy the machine was during the run, `cores` of it; `busy` says why that is too much.

    None, and null for a figure, means "not known".
    """
    return None if load is None else vars(load) | {"busy": busy(load)}


def failed(request: RunRequest, entry: ModelEntry | None, error: str) -> dict[str, Any]:
    """The row of a run without an answer: the reason, and no figure at all.

    `entry` is None for a name that models.toml does not hold.
    """
    return {
        "model": request.model,
        "family": entry.family if entry else None,
        "checkpoint": entry.checkpoint if entry else None,
        "sample": request.sample.id,
        "prompt": request.prompt,
        "mode": request.mode,
        "pixels": request.pixels,
        "error": error,
    }


def stage(span: Span | None) -> dict[str, Any] | None:
    """None for a stage that was not measured."""
    if span is None:
        return None
    return {
        "start_ms": span.start_ms,
        "ms": span.ms,
        "source": span.source,
        "original_ms": span.original_ms,
        "cpu_ms": span.cpu_ms,
        "waited_ms": span.waited_ms,
    }
