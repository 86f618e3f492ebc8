"""Faults of the models' own code: encoding, pixels, frames, the probe's modules."""

import time
from dataclasses import replace
from typing import Any

import torch
from transformers import CLIPVisionModel, LlavaModel

from engine.media import video
from engine.models.adapter import Adapter
from engine.models.eventgpt import EventGPT, EventGPTAdapter, EventGPTModel
from engine.models.llava import LlavaAdapter, PlaceholderAdapter
from tests.faults.fault import LONG_S, Patch, fault, replaces


@replaces(CLIPVisionModel, "forward")
def slow_tower(forward: Any, self: Any, *given: Any, **named: Any) -> Any:
    """Not a fault: it makes stage 3 long enough to be measured, also in processor time."""
    end = time.thread_time() + LONG_S
    while time.thread_time() < end:
        pass
    return forward(self, *given, **named)


@replaces(EventGPTAdapter, "encode")
def adaptor_applied_twice(encode: Any, self: Any, prepared: Any) -> Any:
    return encode(self, prepared).changed(self.model.model.feature_adaptor)


@replaces(EventGPT, "visval_encode")
def adaptor_twice_in_the_model_itself(projected: Any, self: Any, pixels: Any) -> Any:
    return self.model.feature_adaptor(projected(self, pixels))


@replaces(EventGPT, "encode_batch")
def adaptor_left_out(_: Any, self: Any, tensors: Any) -> Any:
    tokens = self.visval_encode(torch.cat(list(tensors)))
    self.model.feature_adaptor(tokens)
    parts = tokens.split([len(one) for one in tensors])
    return [torch.cat([one.mean(dim=1), one.mean(dim=0)]) for one in parts]


@replaces(EventGPT, "encode_batch")
def pooled_in_the_other_order(whole: Any, self: Any, tensors: Any) -> Any:
    found = whole(self, tensors)
    return [rows.roll(-len(one), 0) for rows, one in zip(found, tensors, strict=True)]


@replaces(EventGPTModel, "__init__")
def gelu_by_tanh(init: Any, self: Any, config: Any) -> None:
    init(self, config)
    self.visual_projector[1] = torch.nn.GELU(approximate="tanh")


@replaces(LlavaModel, "get_image_features")
def another_layer_of_the_tower(
    features: Any, self: Any, pixel_values: Any, *_: Any, **named: Any
) -> Any:
    return features(self, pixel_values, **{**named, "vision_feature_layer": -1})


@replaces(EventGPTAdapter, "encode")
def one_event_image_instead_of_five(encode: Any, self: Any, prepared: Any) -> Any:
    return encode(self, replace(prepared, pixels=prepared.pixels[:1]))


@replaces(PlaceholderAdapter, "embed")
def encodes_again(embed: Any, self: Any, prepared: Any, _: Any) -> Any:
    return embed(self, prepared, self.encode(prepared))


@replaces(PlaceholderAdapter, "embed")
def features_ignored(embed: Any, self: Any, prepared: Any, features: Any) -> Any:
    return embed(self, prepared, features.changed(torch.zeros_like))


@replaces(Adapter, "pixels")
def pixels_shifted(pixels: Any, *given: Any) -> Any:
    return pixels(*given).roll(1, -1)


@replaces(LlavaAdapter, "generate")
def generate_raises(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError("odd model")


def probe_without_the_projector(patch: Patch) -> None:
    patch.setattr(LlavaAdapter, "vision_modules", lambda self: [self.model.model.vision_tower])


def text_keeps_special_tokens(patch: Patch) -> None:
    patch.setattr(Adapter, "text", lambda self, ids: self.tokenizer.decode(list(ids)).strip())


@replaces(video, "choose")
def frames_one_too_late(choose: Any, n: int, *given: Any, **named: Any) -> list[int]:
    return [min(n - 1, place + 1) for place in choose(n, *given, **named)]


@replaces(video, "choose")
def arange_is_linspace(choose: Any, n: int, rule: str, *given: Any) -> Any:
    return choose(n, "linspace" if rule == "arange" else rule, *given)


def first_frame_for_the_middle(patch: Patch) -> None:
    patch.setattr(video, "middle", lambda n: [0] if n > 0 else [])


EVENT, LLAVA = (
    "models/test_projection models/test_published models/test_equality",
    "models/test_equality",
)
FAULTS = (
    fault("adaptor applied twice", "eventgpt", "equal_decoupled rows", adaptor_applied_twice,
          EVENT, "EventGPT's encode() applies the feature adaptor a second time."),
    fault("adaptor twice in the model", "eventgpt", "encoded_once rows",
          adaptor_twice_in_the_model_itself, EVENT,
          "EventGPT's network applies the adaptor twice, in all ways."),
    fault("adaptor left out", "eventgpt", "rows", adaptor_left_out, EVENT,
          "EventGPT's adaptor runs, and its result is thrown away, in all ways.",
          "visual rows"),
    fault("pooled in the other order", "eventgpt", "rows", pooled_in_the_other_order, EVENT,
          "EventGPT's rows of images stand after the rows of patches.", "visual rows"),
    fault("GELU by tanh", "eventgpt", "rows", gelu_by_tanh, EVENT,
          "EventGPT's projector uses the tanh approximation of GELU.", "visual rows"),
    fault("another layer of the tower", "llava", "", another_layer_of_the_tower, LLAVA,
          "LLaVA reads the tower's last layer, not the one its configuration names.",
          "visual rows"),
    fault("one event image", "eventgpt", "equal_decoupled equal_features encoded_once",
          one_event_image_instead_of_five, EVENT,
          "EventGPT encodes the first of five event images alone."),
    fault("encodes again", "llava", "encoded_once", encodes_again, LLAVA,
          "Features are given, and the pictures are encoded again all the same."),
    fault("features ignored", "llava", "sight equal_decoupled", features_ignored, LLAVA,
          "Zeros stand in the prompt instead of the visual rows."),
    fault("pixels shifted", "llava", "pixels", pixels_shifted, "models/test_processors",
          "All pixels are shifted by one, in all ways."),
    fault("generate raises", "llava", "answer", generate_raises, LLAVA,
          "The model's own generate() raises."),
    fault("probe without the projector", "llava", "probe", probe_without_the_projector,
          "models/test_equality test_timing pipeline/test_single_run",
          "LLaVA's probe times the tower and leaves the projector out.", "stages"),
    fault("text keeps special tokens", "llava", "sampled", text_keeps_special_tokens,
          "pipeline/test_single_run models/test_equality", "The text keeps the end token.", "text"),
    fault("frames one too late", "video_llava", "", frames_one_too_late,
          "media/test_video media/test_load", "Every frame is the one after the named one.",
          "frames"),
    fault("arange is linspace", "video_llava", "", arange_is_linspace,
          "media/test_video media/test_load", "The rule arange chooses the frames of linspace.",
          "frames"),
    fault("first frame for the middle", "llava", "", first_frame_for_the_middle,
          "media/test_video media/test_load", "A picture model is shown the first frame.",
          "frames"),
)  # fmt: skip
