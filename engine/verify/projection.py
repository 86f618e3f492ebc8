"""Recomputes EventGPT's visual rows in float64 with NumPy, checks what the probe times, and whether
the visual input changes the logits and the answer.

The second computation takes the vision tower's output and the weights of projector and adaptor
from the model, but does not use the model's code: its pooling is the project's own.
"""

from __future__ import annotations

import copy
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import erf

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
NOT_OURS = (
    "Its rows are transformers' own computation; equal answers from given features prove them."
)


@torch.inference_mode()
def rows(adapter: Adapter, prepared: Prepared) -> CheckFinding:
    """EventGPT's encode(), and the model's modules in float64, compared with NumPy."""
    if type(adapter).kind != "events":  # another family may be shown event pictures too
        return CheckFinding("refused", NOT_OURS)
    model, seen = adapter.model.model, list[torch.Tensor]()
    with model.visual_tower.register_forward_hook(
        lambda module, given, out: seen.append(out.detach())
    ):
        (got,) = adapter.encode(prepared).tensors.values()
    hidden = torch.cat(seen)  # [T, P, width]
    first, _, second = model.visual_projector
    inner = _linear(_array(hidden), first)
    expected = _linear(inner * 0.5 * (1 + erf(inner / np.sqrt(2))), second)  # [T, P, hidden]
    if type(model.feature_adaptor) is not torch.nn.Identity:
        expected = _linear(expected, model.feature_adaptor)
    # [T + P, hidden]: means over tokens, then means over images
    wanted = np.concatenate([expected.mean(1), expected.mean(0)])
    again = hidden.double().cpu()
    for module in (model.visual_projector, model.feature_adaptor):  # the model's own, in float64
        again = copy.deepcopy(module).cpu().double()(again)
    apart = {"rows": _apart(_array(got), wanted), "in float64": _apart(_array(again), expected)}
    bounds = {"rows": ROUNDS.get(adapter.dtype, 0.0), "in float64": EXACT}
    faults = [
        f"Visual rows ({name}) differ from the float64 computation by {apart[name]:.2g} of their "
        f"largest value; rounding explains {bounds[name]:.2g}."
        for name in apart
        if not apart[name] <= bounds[name]
    ]
    good = f"Rows are within {apart['rows']:.2g} of the float64 computation from the weights."
    return judged(faults, good, "faults", {"apart": apart, "bounds": bounds})


def _linear(rows: Array, layer: Any) -> Array:
    return rows @ _array(layer.weight).T + (0.0 if layer.bias is None else _array(layer.bias))


def _array(tensor: Any) -> Array:
    return np.asarray(tensor.detach().double().cpu().numpy())


def _apart(one: Array, other: Array) -> float:
    """The largest difference relative to the largest value; infinite if shapes differ."""
    if one.shape != other.shape:
        return float("inf")
    return float(np.abs(one - other).max() / max(float(np.abs(other).max()), 1e-30))


@torch.inference_mode()
def probe(adapter: Adapter, prepared: Prepared) -> CheckFinding:
    timed = adapter.vision_modules()
    inside = {part for module in timed for part in module.modules()}
    layers = {m: name for name, m in adapter.model.named_modules() if not list(m.children())}
    ran: set[torch.nn.Module] = set()
    with ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(layer.register_forward_pre_hook(lambda one, _: ran.add(one)))
        adapter.encode(prepared)
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
    scores, _ = adapter.decoder.prefill(prompt)
    rules = adapter.rules_for(prepared, config)
    ids, _ = decode.generate(adapter.decoder, prompt, rules, lambda _: None, lambda: False)
    return scores, tuple(ids)
