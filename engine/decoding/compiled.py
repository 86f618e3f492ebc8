"""The compiled decode step: one token as one graph, with keys and values of a fixed length.

As in gpt-fast: memory for keys and values is allocated beforehand and written by index, the
position is a tensor that the step increments, the best token is chosen inside, and on CUDA the step
is captured as a CUDA graph; prefill stays eager.  Lengths are rounded up to buckets, so another
prompt does not compile again.  torch.compile's cache is kept on disk, in the settings' folder.

The step is plain operations in three parts: what precedes the layers, one layer, and what follows
them.  Each takes what differs between calls as arguments, so that a compiler may compile a part
once and call it for every layer.  Matrix times vector is written as product and sum, which a
compiler fuses with what surrounds it.

A failure is recorded as text, not raised, because the eager step always works.  One answer at a
time.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional
from transformers import DynamicCache

from engine import settings
from engine.decoding import decode
from engine.decoding.decode import Decoder
from engine.decoding.generation_rules import AnswerRules
from engine.decoding.llama import Layer, Llama, rms_norm, rotate
from engine.errors import SettingsError
from engine.machine.device import forget, release
from engine.types import DecodeConfig

COMPILER = "inductor"
# Bucket sizes in tokens.  On the CPU one graph serves all buckets, so they may be small.
BUCKET, CPU_BUCKET = 256, 64
BUCKETS = 2  # buckets kept in memory; the least recently used one is dropped
_WARM = 3  # runs before a CUDA graph is captured
_SHOWN = 200  # characters of a compiler error
# Tunes matrix times vector as a reduction, which reaches the memory bandwidth (gpt-fast).
_CUDA_OPTIONS = {"coordinate_descent_tuning": True}
Step = Callable[..., tuple[torch.Tensor, torch.Tensor]]


class Place(NamedTuple):
    """Where the token stands: its index [1], its rotation [1, D], and what comes later [L]."""

    position: torch.Tensor
    cos: torch.Tensor
    sin: torch.Tensor
    later: torch.Tensor


def step(
    llama: Llama,
    head: torch.Tensor,
    eos: list[int],
    limit: int,
    part: Callable[[Any], Any] = lambda part: part,
) -> Step:
    """The step as a function of its memory; `part` is applied to its three parts."""
    begin, layer = part(_beginning(llama, limit)), part(_layer(llama))
    end, layers = part(_end(llama, head, eos)), llama.layers

    def run(
        token: torch.Tensor,
        position: torch.Tensor,
        held: torch.Tensor,
        keys: Sequence[torch.Tensor],
        values: Sequence[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, place = begin(token, position, keys[0])
        for weights, kept_keys, kept_values in zip(layers, keys, values, strict=True):
            hidden = layer(hidden, weights, kept_keys, kept_values, place)
        scores, best = end(hidden, position, held)
        return scores, best

    return run


def _beginning(llama: Llama, limit: int) -> Callable[..., tuple[torch.Tensor, Place]]:
    """What precedes the layers; it holds the rotations."""
    embedding, (cosines, sines) = llama.embedding, llama.rotations(0, limit)

    def begin(
        token: torch.Tensor, position: torch.Tensor, keys: torch.Tensor
    ) -> tuple[torch.Tensor, Place]:
        hidden = functional.embedding(token, embedding)[0]  # [hidden]
        cos, sin = cosines.index_select(0, position), sines.index_select(0, position)  # [1, D]
        later = torch.arange(keys.shape[1], device=position.device) > position  # [L]
        return hidden, Place(position, cos, sin, later)

    return begin


def _layer(llama: Llama) -> Callable[..., torch.Tensor]:
    """One layer, with its weights as arguments."""
    heads, size, eps = llama.heads, llama.head_dim, llama.eps

    def layer(
        hidden: torch.Tensor, weights: Layer, keys: torch.Tensor, values: torch.Tensor, place: Place
    ) -> torch.Tensor:
        normed = rms_norm(hidden, weights.before, eps)
        q = rotate(_times(weights.q, normed).view(heads, size), place.cos, place.sin)
        k = rotate(_times(weights.k, normed).view(heads, size), place.cos, place.sin)
        v = _times(weights.v, normed).view(heads, size)
        keys.index_copy_(1, place.position, k[:, None])
        values.index_copy_(1, place.position, v[:, None])
        hidden = hidden + _times(weights.o, _attend(q, keys, values, place.later).view(-1))
        normed = rms_norm(hidden, weights.between, eps)
        gate = functional.silu(_times(weights.gate, normed))
        return hidden + _times(weights.down, gate * _times(weights.up, normed))

    return layer


def _end(
    llama: Llama, head: torch.Tensor, eos: list[int]
) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """What follows the layers: scores, the best token that may follow; position grows by one."""
    norm, eps = llama.norm, llama.eps
    ends = torch.zeros(len(head), dtype=torch.bool, device=head.device)
    ends[eos] = True

    def end(
        hidden: torch.Tensor, position: torch.Tensor, held: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = _times(head, rms_norm(hidden, norm, eps)).float()
        allowed = scores.masked_fill(ends & (position < held), -torch.inf)
        position.add_(1)
        return scores[None], allowed.argmax(-1, keepdim=True)

    return end


def _times(weight: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """weight [out, in], vector [in] -> [out], in a form that the compiler can fuse."""
    return (weight * vector).sum(-1)


def _attend(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, later: torch.Tensor
) -> torch.Tensor:
    """q [heads, D], keys and values [heads, L, D], later [L] -> [heads, D]."""
    scores = (keys * q[:, None]).sum(-1) * q.shape[-1] ** -0.5
    shares = scores.masked_fill(later, -torch.inf).softmax(-1, dtype=torch.float32)
    mixed: torch.Tensor = (shares.to(q.dtype)[..., None] * values).sum(1)
    return mixed


def wanted(config: DecodeConfig, device: torch.device) -> bool:
    """Whether this configuration uses the compiled step; "auto" does on CUDA."""
    return config.backend == "compiled" or (config.backend == "auto" and device.type == "cuda")


Call = Callable[[], tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True, eq=False)
class Bucket:
    """The memory of one bucket: keys and values [heads, L, D] per layer, and the step's inputs.

    `token` and `position` are [1].  `call` runs the step: scores [1, vocabulary] float32, and the
    best token [1], which is no EOS at positions below `held`.  `step` is held because a CUDA graph
    reads its tensors (the rotations) by address and does not keep them.
    """

    step: Step
    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    token: torch.Tensor
    position: torch.Tensor
    held: torch.Tensor
    call: Call


class CompiledStep(nn.Module):
    """The compiled step of one loaded model; a module, so that hooks can read its scores."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.failure = ""
        self._decoder = decoder
        self._limit = int(decoder.text_config.max_position_embeddings)
        self._step: Step | None = None
        self._rooms: OrderedDict[int, Bucket] = OrderedDict()
        self._room: Bucket | None = None
        self._rules: AnswerRules | None = None

    @torch.inference_mode()
    def ready(self, tokens: int) -> float:
        """Prepares a bucket for `tokens` tokens; returns the compile time in s, 0.0 if none."""
        size = self._bucket(tokens)
        if self.failure or tokens > self._limit or size in self._rooms:
            return 0.0
        start, compiled = time.perf_counter(), self._compiles()
        try:
            self._rooms[size] = self._open(size)
        except Exception as error:  # noqa: BLE001 - any compiler error; eager still works
            self.failure = _reason(error)
            forget(error)
            self._rooms.clear()
            self._room = self._step = None
            release()
            return 0.0
        while len(self._rooms) > BUCKETS:
            self._rooms.popitem(last=False)
        return time.perf_counter() - start if compiled else 0.0

    def _compiles(self) -> bool:
        """Whether another bucket needs another graph."""
        return self._step is None or self._decoder.device.type == "cuda"

    def _bucket(self, tokens: int) -> int:
        unit = CPU_BUCKET if self._decoder.device.type == "cpu" else BUCKET
        return -(-tokens // unit) * unit

    def _open(self, size: int) -> Bucket:
        _use_own_folder(settings.load().cache_dir / "compiled")
        llama, device, head = self._decoder.llama, self._decoder.device, self._decoder.head
        if llama is None or type(head) is not nn.Linear or getattr(head, "bias", None) is not None:
            raise TypeError("its language model is not a plain LLaMA on one device")
        if self._step is None or self._compiles():
            given = llama, head.weight, list(self._decoder.eos_ids), self._limit
            # On CUDA it is compiled in parts, one of which is a layer: all layers share that graph
            # and its tuned kernels, and replaying a CUDA graph costs nothing per part.  On the CPU
            # every part would check its arguments for every token, so there it is one graph.
            if device.type == "cuda":
                self._step = step(*given, lambda part: _compile(part, device))
            else:
                self._step = _compile(step(*given), device)
        with torch.random.fork_rng([device] if device.type == "cuda" else []):  # for tuning
            return _furnish(self._step, llama, size, device)

    @torch.inference_mode()
    def start(self, kept: DynamicCache, rules: AnswerRules) -> None:
        """Copies the keys and values of a prompt; call `ready` for this length first."""
        context, config = kept.get_seq_length(), rules.config
        size = self._bucket(context + config.max_new_tokens)
        self._rooms.move_to_end(size)
        self._room, self._rules = self._rooms[size], rules
        for one, keys, values in zip(kept.layers, self._room.keys, self._room.values, strict=True):
            for room, rows in ((keys, one.keys), (values, one.values)):
                room[:, :context] = rows[0]
                room[:, context:] = 0  # old values might be NaN
        self._room.position.fill_(context)
        self._room.held.fill_(context + config.min_new_tokens - 1)

    def next(self, ids: list[int]) -> int:
        assert self._rules is not None  # start() comes first
        scores, best = self(ids[-1])
        if self._rules.config.greedy and not self._rules.processors:
            return int(best)
        return decode.choose(scores, ids, self._rules)

    @torch.inference_mode()
    def forward(self, token: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The scores [1, vocabulary] after this token, and the best token that may follow [1]."""
        assert self._room is not None  # start() comes first
        self._room.token.fill_(token)
        return self._room.call()


def _compile(part: Any, device: torch.device) -> Any:
    """On CUDA one graph per bucket with fixed lengths; elsewhere one with a dynamic length."""
    options: Any = dict(_CUDA_OPTIONS) if device.type == "cuda" and COMPILER == "inductor" else None
    return torch.compile(
        _with_own_code(part),
        fullgraph=True,
        dynamic=False if device.type == "cuda" else None,
        backend=COMPILER,
        options=options,
    )


def _with_own_code(function: Any) -> Any:
    """A copy with its own code object.  torch.compile limits the number of graphs per code object,
    so other models and buckets would count.  torch 2.11 lacks its switch isolate_recompiles."""
    code = function.__code__.replace()
    return FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


def _furnish(step: Step, llama: Llama, size: int, device: torch.device) -> Bucket:
    """Allocates the memory of a bucket and runs the step once, which compiles it."""
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
    return Bucket(step, keys, values, token, position, held, call)


def _captured(call: Call, device: torch.device) -> Call:
    """The call as a CUDA graph, warmed up on a side stream, as torch.cuda.graph requires."""
    with torch.cuda.device(device):
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM):
                call()
        torch.cuda.current_stream(device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # A stream must be given: the default one is shared by all devices, and belongs to the
        # first.  Other threads may use the device meanwhile.
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            scores, best = call()

    def replay() -> tuple[torch.Tensor, torch.Tensor]:
        graph.replay()
        return scores, best

    return replay


def _use_own_folder(folder: Path) -> None:
    """Sets torch.compile's cache folder.  It holds code, so no other user may write to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        state = folder.stat()
    except OSError as error:
        raise SettingsError(f"{folder} cannot be used ({error.strerror})") from error
    if os.name == "posix" and (state.st_uid != os.geteuid() or state.st_mode & 0o022):
        raise SettingsError(f"other users may write to {folder}: remove it, or its permissions")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)


def _reason(error: Exception) -> str:
    """The first line of a compiler's or allocator's message, without torch's prefix."""
    error = getattr(error, "inner_exception", error)
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    text = f"{type(error).__name__}: {line.rstrip('.')}" if line else type(error).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
