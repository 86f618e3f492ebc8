"""The decode step, compiled: one token as one graph over keys and values of a fixed length.

As gpt-fast has it: memory for keys and values is made beforehand and written by index, the position
is a tensor that the step itself moves on, the best token is chosen inside, and on CUDA the whole is
captured as a CUDA graph; prefill stays eager.  Lengths come in buckets, so that another prompt
compiles nothing.  What was compiled is kept on disk (torch.compile's own cache, in the folder of
the settings).

Boundary: one decoder's step, its memory and its compilation; the loop is decode.py's.  A failure is
kept in words and never raised, since eager always works.  One answer at a time: whoever decodes
owns the device.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from transformers import DynamicCache

from engine import settings
from engine.decoding import decode
from engine.decoding.decode import Decoder
from engine.decoding.generation_rules import AnswerRules
from engine.decoding.llama import Llama, rms_norm, rotate
from engine.errors import SettingsError
from engine.machine import memory
from engine.types import DecodeConfig

COMPILER = "inductor"
# Tokens in one bucket.  On the CPU one graph serves all of them, so that they may be small.
BUCKET, CPU_BUCKET = 256, 64
ROOMS = 2  # buckets kept in memory, the least recently used one leaves
_WARM = 3  # runs before a CUDA graph is captured
_SHOWN = 200  # characters of a compiler's complaint
# Matrix times vector is then tuned as a reduction, which is what reaches the bandwidth (gpt-fast).
_CUDA_OPTIONS = {"coordinate_descent_tuning": True}

Step = Callable[..., tuple[torch.Tensor, torch.Tensor]]


def wanted(config: DecodeConfig, device: torch.device) -> bool:
    """Whether this configuration asks for the compiled step: "auto" does on CUDA."""
    return config.backend == "compiled" or (config.backend == "auto" and device.type == "cuda")


@dataclass(frozen=True, eq=False)
class Room:
    """The memory of one bucket: keys and values [heads, L, D] per layer, and what the step takes.

    `token` and `position` are [1]; at positions below `held` no answer may end.  `call` runs the
    step on all of it: scores [1, vocabulary] float32 and the best token [1].
    """

    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    token: torch.Tensor
    position: torch.Tensor
    held: torch.Tensor
    call: Callable[[], tuple[torch.Tensor, torch.Tensor]]


class CompiledStep(nn.Module):
    """The compiled step of one loaded model.  A module, so that hooks can watch its scores."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.failure = ""
        self._decoder = decoder
        self._limit = int(decoder.text_config.max_position_embeddings)
        self._eos = list(decoder.eos_ids)
        self._step: Step | None = None
        self._rooms: OrderedDict[int, Room] = OrderedDict()
        self._room: Room | None = None
        self._config = DecodeConfig()
        self._rules: AnswerRules | None = None

    @torch.inference_mode()
    def ready(self, tokens: int) -> float:
        """Makes ready for so many tokens; the seconds it took to compile, 0.0 if that was done.

        After a failure, which `failure` then tells, nothing is tried again.
        """
        size = self._bucket(tokens)
        if self.failure or tokens > self._limit or size in self._rooms:
            return 0.0
        start, compiled = time.perf_counter(), self._compiles()
        try:
            self._rooms[size] = self._open(size)
        except Exception as error:  # noqa: BLE001 - a compiler fails in any way, eager still works
            self.failure = _reason(error)
            memory.forget(error)
            self._close()
            return 0.0
        while len(self._rooms) > ROOMS:
            self._rooms.popitem(last=False)
        return time.perf_counter() - start if compiled else 0.0

    def _compiles(self) -> bool:
        """Whether another bucket needs another graph."""
        return self._step is None or self._decoder.device.type == "cuda"

    def _bucket(self, tokens: int) -> int:
        unit = CPU_BUCKET if self._decoder.device.type == "cpu" else BUCKET
        return -(-tokens // unit) * unit

    def _open(self, size: int) -> Room:
        _use_own_folder(settings.load().compiled_dir)
        llama, device, head = self._decoder.llama, self._decoder.device, self._decoder.head
        if llama is None or type(head) is not nn.Linear or getattr(head, "bias", None) is not None:
            raise TypeError("its language model is not a plain LLaMA on one device")
        if self._step is None or self._compiles():
            self._step = _compile(_step(llama, head.weight, self._eos, self._limit), device)
        with torch.random.fork_rng([device] if device.type == "cuda" else []):  # tuning draws
            return _furnish(self._step, llama, size, device)

    def _close(self) -> None:
        self._rooms.clear()
        self._room = self._step = None
        memory.release()

    @torch.inference_mode()
    def start(
        self, kept: DynamicCache, config: DecodeConfig, rules: AnswerRules | None = None
    ) -> None:
        """Takes over the keys and values of a prompt; `ready` was called for this length."""
        self._rules = rules
        context = kept.get_seq_length()
        size = self._bucket(context + config.max_new_tokens)
        self._rooms.move_to_end(size)
        self._room, self._config = self._rooms[size], config
        for layer, keys, values in zip(
            kept.layers, self._room.keys, self._room.values, strict=True
        ):
            for room, rows in ((keys, layer.keys), (values, layer.values)):
                room[:, :context] = rows[0]
                room[:, context:] = 0  # what an earlier answer left might be no number
        self._room.position.fill_(context)
        self._room.held.fill_(context + config.min_new_tokens - 1)

    def next(self, ids: list[int]) -> int:
        """The id that follows these new ones."""
        scores, best = self(ids[-1])
        if self._config.greedy and self._rules is None:
            return int(best)
        return decode.choose(scores, ids, self._config, self._eos, self._rules)

    @torch.inference_mode()
    def forward(self, token: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The scores [1, vocabulary] after this token, and the best one [1]."""
        assert self._room is not None  # start() comes first
        self._room.token.fill_(token)
        return self._room.call()


def _step(llama: Llama, head: torch.Tensor, eos: list[int], limit: int) -> Step:
    """The step as a function of its memory; weights and rotations are the function's own."""
    layers, embedding, last_norm, eps = llama.layers, llama.embedding, llama.norm, llama.eps
    heads, size = llama.heads, llama.head_dim
    cosines, sines = llama.rotations(0, limit)
    ends = torch.zeros(len(head), dtype=torch.bool, device=head.device)
    ends[eos] = True

    def step(
        token: torch.Tensor,
        position: torch.Tensor,
        held: torch.Tensor,
        keys: Sequence[torch.Tensor],
        values: Sequence[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = functional.embedding(token, embedding)[0]  # [hidden]
        cos, sin = cosines.index_select(0, position), sines.index_select(0, position)  # [1, D]
        later = torch.arange(keys[0].shape[1], device=position.device) > position  # [L]
        for layer, kept_keys, kept_values in zip(layers, keys, values, strict=True):
            normed = rms_norm(hidden, layer.before, eps)
            q = rotate(_times(layer.q, normed).view(heads, size), cos, sin)
            k = rotate(_times(layer.k, normed).view(heads, size), cos, sin)
            v = _times(layer.v, normed).view(heads, size)
            kept_keys.index_copy_(1, position, k[:, None])
            kept_values.index_copy_(1, position, v[:, None])
            mixed = _attend(q, kept_keys, kept_values, later)
            hidden = hidden + _times(layer.o, mixed.view(-1))
            normed = rms_norm(hidden, layer.between, eps)
            gate = functional.silu(_times(layer.gate, normed))
            hidden = hidden + _times(layer.down, gate * _times(layer.up, normed))
        scores = _times(head, rms_norm(hidden, last_norm, eps)).float()
        scores = scores.masked_fill(ends & (position < held), -torch.inf)
        position.add_(1)
        return scores[None], scores.argmax(-1, keepdim=True)

    return step


def _times(weight: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """weight [out, in], vector [in] -> [out]: written so that it is fused with its neighbours."""
    return (weight * vector).sum(-1)


def _attend(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, later: torch.Tensor
) -> torch.Tensor:
    """q [heads, D], keys and values [heads, L, D], later [L] -> [heads, D]."""
    scores = (keys * q[:, None]).sum(-1) * q.shape[-1] ** -0.5
    shares = scores.masked_fill(later, -torch.inf).softmax(-1, dtype=torch.float32)
    mixed: torch.Tensor = (shares.to(q.dtype)[..., None] * values).sum(1)
    return mixed


def _compile(step: Step, device: torch.device) -> Step:
    """On CUDA a graph per bucket, of fixed lengths; elsewhere one in which the length is free."""
    options = dict(_CUDA_OPTIONS) if device.type == "cuda" and COMPILER == "inductor" else None
    compiled: Step = torch.compile(  # type: ignore[call-overload]  # of its last argument
        step,
        fullgraph=True,
        dynamic=False if device.type == "cuda" else None,
        backend=COMPILER,
        options=options,
        isolate_recompiles=True,  # other models' graphs do not count against this one's limit
    )
    return compiled


def _furnish(step: Step, llama: Llama, size: int, device: torch.device) -> Room:
    """Makes the memory of a bucket and runs the step on it once, which compiles."""
    weight = llama.embedding

    def memory_() -> list[torch.Tensor]:
        shape = (llama.heads, size, llama.head_dim)
        made = [torch.zeros(shape, dtype=weight.dtype, device=device) for _ in llama.layers]
        if device.type != "cuda":
            for one in made:
                torch._dynamo.mark_dynamic(one, 1)
        return made

    keys, values = memory_(), memory_()
    token, position, held = (torch.zeros(1, dtype=torch.long, device=device) for _ in range(3))

    def call() -> tuple[torch.Tensor, torch.Tensor]:
        return step(token, position, held, keys, values)

    call()
    if device.type == "cuda":
        call = _captured(call, device)
    return Room(keys, values, token, position, held, call)


def _captured(
    call: Callable[[], tuple[torch.Tensor, torch.Tensor]], device: torch.device
) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    """The call as a CUDA graph, warmed up on a stream of its own, as torch.cuda.graph asks."""
    with torch.cuda.device(device):
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM):
                call()
        torch.cuda.current_stream(device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # other threads may look at the device meanwhile
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            scores, best = call()

    def replay() -> tuple[torch.Tensor, torch.Tensor]:
        graph.replay()
        return scores, best

    return replay


def _use_own_folder(folder: Path) -> None:
    """torch.compile keeps and reads its code there: code, so nobody else may write it."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = folder.stat()
    except OSError as error:
        raise SettingsError(f"{folder} cannot be used ({error.strerror})") from error
    if os.name == "posix" and (state.st_uid != os.geteuid() or state.st_mode & 0o022):
        raise SettingsError(f"others may write {folder}: remove it, or take that right from them")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)


def _reason(error: Exception) -> str:
    """The first line of what a compiler or an allocator says, without torch's wrapping of it."""
    error = getattr(error, "inner_exception", error)
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    said = f"{type(error).__name__}: {line.rstrip('.')}" if line else type(error).__name__
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}..."
