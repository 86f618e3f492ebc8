"""Recomputes visual rows in float64 with NumPy, checks what the probe times, and whether the visual
input changes the logits and the answer.

The second computation takes the vision tower's output and the weights of projector and adaptor
from the model, but does not use the model's code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import erf, expit

from engine.decoding import decode
from engine.models.adapter import Adapter
from engine.storage.schemas import Outcome
from engine.types import Features, Prepared
from engine.verify.answer_paths import Subject
from engine.verify.verdict import CheckFinding, judged

Array = npt.NDArray[np.float64]
# The largest difference of rows, relative to their largest value, that rounding explains.
ROUNDS = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}
EXACT = 1e-9  # for the same modules run in float64
NOT_PLAIN = "Its projector has other layers than linear ones, so its rows were not recomputed."


def gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": lambda x: np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2)))),
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_new": gelu_tanh,
    "quick_gelu": lambda x: np.asarray(x * expit(1.702 * x)),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: np.asarray(x * expit(x)),
}


class ProjectionParts(NamedTuple):
    """The modules that make a model's rows.

    tower: the module whose output is projected; layers: linear layers, each with the activation
    after it ("" for none); modules: the model's modules for the same computation.
    """

    tower: torch.nn.Module
    layers: tuple[tuple[torch.nn.Module, str], ...]
    modules: tuple[torch.nn.Module, ...]
    keeps_cls: bool
    pools: bool


def parts(adapter: Adapter) -> ProjectionParts | None:
    """The model's parts; None if its projector has another form."""
    eventgpt = type(adapter).kind == "events"  # another family may be shown event pictures too
    found = _event_parts(adapter) if eventgpt else _placeholder_parts(adapter)
    if found is None:
        return None
    plain = all(type(layer) is torch.nn.Linear for layer, _ in found.layers)
    return found if plain and all(act in ("", *ACTIVATIONS) for _, act in found.layers) else None


def _event_parts(adapter: Adapter) -> ProjectionParts:
    model = adapter.model.model
    first, _, second = model.visual_projector
    layers = [(first, "gelu"), (second, "")]
    if type(model.feature_adaptor) is not torch.nn.Identity:
        layers.append((model.feature_adaptor, ""))
    modules = (model.visual_projector, model.feature_adaptor)
    return ProjectionParts(model.visual_tower, tuple(layers), modules, True, True)


def _placeholder_parts(adapter: Adapter) -> ProjectionParts | None:
    """LLaVA and Video-LLaVA: one layer of the tower, with or without its CLS; else None."""
    model, config = adapter.model.model, adapter.model.config
    projector: Any = getattr(model, "multi_modal_projector", None)
    if not hasattr(projector, "linear_2") or isinstance(config.vision_feature_layer, list | tuple):
        return None
    if config.model_type not in ("llava", "video_llava"):
        return None
    tower: Any = adapter.vision_modules()[0]
    blocks, chosen = tower.encoder.layers, config.vision_feature_layer
    place = chosen if chosen >= 0 else len(blocks) + 1 + chosen
    layers = ((projector.linear_1, config.projector_hidden_act), (projector.linear_2, ""))
    clips = tower is getattr(model, "video_tower", None)
    full = clips or config.vision_feature_select_strategy == "full"
    # Place 0 is what the first block reads; SigLIP has no norm before it.
    read = blocks[place - 1] if place else getattr(tower, "pre_layrnorm", tower.embeddings)
    return ProjectionParts(read, layers, (projector,), full, False)


@torch.inference_mode()
def rows(adapter: Adapter, prepared: Prepared) -> CheckFinding:
    """Compares encode(), and the model's modules in float64, with NumPy."""
    found = parts(adapter)
    if found is None:
        return CheckFinding("unresolved", NOT_PLAIN)
    seen: list[torch.Tensor] = []

    def see(module: Any, arguments: Any, out: Any) -> None:
        seen.append((out if isinstance(out, torch.Tensor) else out[0]).detach())

    handle = found.tower.register_forward_hook(see)
    try:
        got = adapter.encode(prepared)
    finally:
        handle.remove()
    hidden = torch.cat([one.reshape(-1, *one.shape[-2:]) for one in seen])
    hidden = hidden if found.keeps_cls else hidden[:, 1:]
    expected = _expected(found, _array(hidden))  # [T, P, hidden]
    wanted = expected.reshape(-1, expected.shape[-1])
    if found.pools:  # [T + P, hidden]: means over tokens, then means over images
        wanted = np.concatenate([expected.mean(1), expected.mean(0)])
    again = hidden.double().cpu()
    for module in found.modules:  # the model's own, in float64
        again = copy.deepcopy(module).cpu().double()(again)
    tensors = [t for name, t in got.tensors.items() if not name.startswith("deepstack")]
    made = torch.cat([one.reshape(-1, one.shape[-1]) for one in tensors])  # [V, hidden]
    apart = {"rows": _apart(_array(made), wanted), "in float64": _apart(_array(again), expected)}
    bounds = {"rows": ROUNDS.get(adapter.dtype, 0.0), "in float64": EXACT}
    faults = [
        f"Visual rows ({name}) differ from the float64 computation by {apart[name]:.2g} of their "
        f"largest value; rounding explains {bounds[name]:.2g}."
        for name in apart
        if not apart[name] <= bounds[name]
    ]
    good = f"Rows are within {apart['rows']:.2g} of the float64 computation from the weights."
    return judged(faults, good, "faults", {"apart": apart, "bounds": bounds})


def _expected(found: ProjectionParts, hidden: Array) -> Array:
    """hidden [T, P, width] -> [T, P, hidden], before any pooling."""
    for layer, activation in found.layers:
        bias: Any = layer.bias
        hidden = hidden @ _array(layer.weight).T + (0.0 if bias is None else _array(bias))
        hidden = ACTIVATIONS[activation](hidden) if activation else hidden
    return hidden


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.detach().double().cpu().numpy())


def _apart(one: Array, other: Array) -> float:
    """The largest difference relative to the largest value; infinite if shapes differ."""
    if one.shape != other.shape:
        return float("inf")
    return float(np.abs(one - other).max() / max(float(np.abs(other).max()), 1e-30))


@torch.inference_mode()
def probe(adapter: Adapter, prepared: Prepared) -> CheckFinding:
    """Every layer that runs in stage 3 must be inside a module that the probe times."""
    timed = adapter.vision_modules()
    inside = {part for module in timed for part in module.modules()}
    layers = {m: name for name, m in adapter.model.named_modules() if not list(m.children())}
    ran: set[torch.nn.Module] = set()
    handles = [layer.register_forward_pre_hook(lambda layer, _: ran.add(layer)) for layer in layers]
    try:
        adapter.encode(prepared)
    finally:
        for handle in handles:
            handle.remove()
    faults = [
        f"{name} runs in stage 3, but the probe does not time it."
        for layer, name in layers.items()
        if layer in ran - inside
    ]
    faults += [
        f"{type(inner).__name__} is inside {type(outer).__name__} and is timed twice."
        for outer in timed
        for inner in timed
        if inner is not outer and any(part is inner for part in outer.modules())
    ]
    names = [type(module).__name__ for module in timed]
    good = f"All {len(ran)} layers of stage 3 are timed by the probe: {', '.join(names)}."
    return judged(faults, good, "faults", {"modules": names, "layers": len(ran), "faults": faults})


@torch.inference_mode()
def sight(subject: Subject, other: Prepared | None, rounding: float) -> CheckFinding:
    """Fails if the logits do not change; stays open if the answer never changes.

    Another sample's pixels are used if their shape fits, else the sample's own pixels, negated.
    """
    adapter, prepared = subject.adapter, subject.prepared
    features = adapter.encode(prepared)
    scores, own = _decode(subject, features)
    shown, pixels = "the same pictures as negatives", -prepared.pixels
    if other is not None and other.pixels.shape == prepared.pixels.shape:
        shown, pixels = "another sample", other.pixels
    replaced = {
        shown: adapter.encode(replace(prepared, pixels=pixels)),
        "zeros": features.changed(torch.zeros_like),
    }
    changes: list[dict[str, Any]] = []
    for shown, others in replaced.items():
        changed, ids = _decode(subject, others)
        moved = float((changed - scores).abs().max())
        changes.append({"shown": shown, "moved": moved, "ids": ids, "text": adapter.text(ids)})
    still = [change["shown"] for change in changes if not change["moved"] > rounding]  # NaN too
    same = [change["shown"] for change in changes if change["ids"] == own]
    least = min(change["moved"] for change in changes)
    outcome: Outcome = "passed"
    sentence = f"Other features change its logits by {least:.3g} or more"
    sentence += f" (the answer stays the same with {same[0]})." if same else "."
    if still:
        outcome = "failed"
        sentence = f"Its logits do not change with {' or '.join(still)} as input."
    elif len(same) == len(changes):
        outcome = "unresolved"
        sentence = (
            f"Its logits change by {least:.3g} or more, but it gives the same answer with "
            f"{' and with '.join(same)}: its answer does not depend on its input."
        )
    evidence = {"own": adapter.text(own), "changes": changes}
    unit = "change of logits, at least"
    return CheckFinding(outcome, sentence, least, rounding, unit, evidence)


def _decode(subject: Subject, features: Features) -> tuple[torch.Tensor, tuple[int, ...]]:
    """The first scores [1, vocabulary] and the new ids."""
    adapter, prepared, config = subject.adapter, subject.prepared, subject.greedy
    prompt = adapter.embed(prepared, features)
    scores, _ = decode.prefill(adapter.decoder, prompt)
    rules = adapter.rules_for(prepared, config)
    ids, _ = decode.generate(adapter.decoder, prompt, rules, lambda _: None, lambda: False)
    return scores, tuple(ids)
