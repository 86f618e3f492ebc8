"""Checks of what the model is shown, pixels and pictures of other shapes, and of what it makes of
them: EventGPT's visual rows, the modules that the probe times, and whether its answer depends on
its input.

Pixels are compared with those of the image processor that a checkpoint names, which is loaded
independently of the adapter: from engine/models only the folder's path is used, so a wrong class or
setting there shows up as a difference here.

A sample's pictures often have one shape, and are nearly square for the model: a grid with height
and width swapped, or a mask without padding, would then change nothing.  So a wide and a tall
picture are shown in every way, and the inputs of generate() are compared with those of the
processor that the checkpoint names.

Visual rows are recomputed in float64 with NumPy, from the vision tower's output and the weights of
projector and adaptor, but without the model's code: its pooling is the project's own.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image as Pictures
from scipy.special import erf
from transformers import AutoImageProcessor, CLIPImageProcessorPil
from transformers.video_utils import VideoMetadata

from engine.decoding import decode
from engine.errors import BadInput
from engine.models import auto_processor, checkpoint, registry
from engine.models.adapter import Adapter
from engine.storage.result_rows import Outcome
from engine.types import ChosenFrames, Features, Image, Media, ModelInfo, Prepared
from engine.verify import checks
from engine.verify.answer_paths import Subject, rounding
from engine.verify.verdict import CheckFinding, judged

FRAMES = 8
TOKENS = 8  # of the answers to other shapes
_NAMING = ('"image_processor_type"', '"feature_extractor_type"')
_SHAPES = ((60, 180), (180, 60))  # height and width: padding and cropping differ between them


def pixels(subject: Subject) -> CheckFinding:
    """Compared on the sample's pictures, and on a wide and a tall one."""
    adapter, equal = subject.adapter, True
    for shown in (subject.media, *(Media("image", (one,), "", "noise") for one in noise())):
        named = inputs(adapter, shown, "What?")
        wanted = next(made for name, made in named.items() if name.startswith("pixel_values"))
        equal &= torch.equal(adapter.pixels_of(shown), wanted)
    ours, used = adapter.pixels_of(subject.media), subject.prepared.pixels
    faults = [] if equal else ["Pixels differ from the named image processor's."]
    if not torch.equal(used, ours.to(used.device, used.dtype)):
        faults.append("The run used other pixels than the adapter makes.")
    good = "The pixels equal those of the image processor that the checkpoint names."
    return judged(faults, good, "faults", {})


def inputs(adapter: Any, shown: Media, question: str) -> dict[str, torch.Tensor]:
    """What the named processor makes of the pictures: pixels, and grids, sizes or masks of them;
    that of transformers with a prompt of the checkpoint's own chat template."""
    info, images = adapter.info, shown.images
    if info.family != "transformers":
        make = _processor(info)
        return dict(make(list(images), return_tensors="pt", input_data_format="channels_last"))
    processor = auto_processor.load(info, checkpoint.locate(registry.entry(info.name)))
    given: dict[str, Any]
    if rate := adapter.clip_rate(shown):
        text = adapter.prompt_text(question, 1, "video")
        clip = VideoMetadata(len(images), fps=rate, frames_indices=list(range(len(images))))
        given = {"videos": [np.stack(images)], "video_metadata": [clip], "do_sample_frames": False}
    else:
        text = adapter.prompt_text(question, len(images))
        given = {"images": [[Pictures.fromarray(image) for image in images]]}
    with warnings.catch_warnings():
        # PaliGemma's class converts a tensor in a way that numpy has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        made = processor(text=[text], return_tensors="pt", **given)
    each_token = made["input_ids"].shape  # what has one value per token belongs to the prompt
    return {name: value for name, value in made.items() if value.shape[:2] != each_token}


def noise() -> list[Image]:
    """A wide and a tall picture of noise, which processors treat differently."""
    random = np.random.default_rng(0)
    return [random.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in _SHAPES]


def _processor(info: ModelInfo) -> Any:
    """CLIP's at the tower's size if an EventGPT folder names none, because transformers knows no
    processor for EventGPT's model_type."""
    folder = checkpoint.locate(registry.entry(info.name))
    files = [folder / name for name in ("preprocessor_config.json", "processor_config.json")]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    if info.family != "eventgpt" or any(key in text for text in texts for key in _NAMING):
        return AutoImageProcessor.from_pretrained(
            folder, backend="pil", local_files_only=True, trust_remote_code=False
        )
    if texts:
        return CLIPImageProcessorPil.from_pretrained(folder, local_files_only=True)
    assert info.tower is not None  # read from config.json
    side = info.tower.image_size
    square = {"height": side, "width": side}
    return CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size=square)


def shapes(subject: Subject, folder: Path, doing: Callable[[str], None]) -> CheckFinding:
    """The worst finding, with the sentences of all; open if the model takes no such pictures."""
    found = []
    for shown in _shown(subject):
        doing(f"answering about {shown.source}")
        given = (subject.sample, subject.request, folder / shown.source, subject.cancelled)
        try:
            shaped = Subject(subject.adapter, *given, shown)
        except BadInput as error:
            return CheckFinding("unresolved", f"{error} Pictures of other shapes are not covered.")
        found.append(_compared(shaped))
        shaped.cache.close()
    worst = max(found, key=lambda one: list(checks.OUTCOMES.values()).index(one.outcome))
    return replace(worst, sentence=" ".join(one.sentence for one in found))


def _shown(subject: Subject) -> Iterator[Media]:
    """Both in one prompt if the model is shown several; the frames of a clip have one shape."""
    kind, (wide, tall) = subject.adapter.kind, noise()
    if kind == "events":
        yield Media(kind, (wide, tall), "wide and tall", "a wide and a tall picture")
        return
    count, frames = (FRAMES, subject.media.frames) if kind == "video" else (1, None)
    if frames is not None:
        frames = ChosenFrames(tuple(range(count)), count, rate=frames.rate)
    for name, picture in (("wide", wide), ("tall", tall)):
        what = f"{count} {name} frames" if kind == "video" else f"a {name} picture"
        yield Media(kind, (picture,) * count, name, what, frames=frames)


def _compared(subject: Subject) -> CheckFinding:
    adapter, name = subject.adapter, subject.media.source
    received: dict[str, Any] = {}
    config = replace(subject.greedy, max_new_tokens=min(TOKENS, subject.greedy.max_new_tokens))
    own = adapter.model.generate

    def generate(*given: Any, **inputs: Any) -> Any:
        received.update(inputs)
        return own(*given, **inputs)

    adapter.model.generate = generate
    try:
        plain = subject.plain(config)
    finally:
        del adapter.model.generate
    pairs = [(plain, getattr(subject, way)(config)) for way in subject.ways if way != "plain"]
    found = checks.finding(pairs, rounding(adapter, subject.prepared, plain), adapter.pieces)
    found = replace(found, sentence=f"With {name}: {found.sentence}")
    if adapter.info.family != "transformers":  # the others give the model pixels alone
        return found
    for key, value in inputs(adapter, subject.media, subject.request.prompt).items():
        got = received.get(key)
        same = isinstance(got, torch.Tensor) and torch.equal(got, value.to(got.device, got.dtype))
        if not same:
            sentence = f"With {name}: the model gets another {key} than its processor makes."
            return replace(found, outcome="failed", sentence=sentence)
    return found


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
    with model.visual_tower.register_forward_hook(lambda *given: seen.append(given[-1].detach())):
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
    """Fails if the logits do not change; stays open if the answer never changes.  Another sample's
    pixels are used if their shape fits, else the sample's own pixels, negated."""
    adapter, prepared = subject.adapter, subject.prepared
    features = adapter.encode(prepared)
    scores, own = _decode(subject, features)
    shown, pixels = "the same pictures as negatives", -prepared.pixels
    if other is not None and other.pixels.shape == prepared.pixels.shape:
        shown, pixels = "another sample", other.pixels
    others = adapter.encode(replace(prepared, pixels=pixels))
    replaced = {shown: others, "zeros": features.changed(torch.zeros_like)}
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
    return CheckFinding(outcome, sentence, least, rounding, "change of logits, at least", evidence)


def _decode(subject: Subject, features: Features) -> tuple[torch.Tensor, tuple[int, ...]]:
    """The first scores [1, vocabulary] and the new ids."""
    adapter, prepared, config = subject.adapter, subject.prepared, subject.greedy
    prompt = adapter.embed(prepared, features)
    scores, _ = adapter.decoder.prefill(prompt)
    rules = adapter.rules_for(prepared, config)
    ids, _ = decode.generate(adapter.decoder, prompt, rules, lambda _: None, lambda: False)
    return scores, tuple(ids)
