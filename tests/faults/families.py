"""Faults of the adapter for any model of transformers."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from engine import media
from engine.decoding.decode import WholeModel
from engine.models import auto_processor
from engine.models.transformers_adapter import TransformersAdapter
from engine.types import Features
from tests.faults.fault import Patch, fault, replaces

TESTS = "models/test_transformers_adapter verify/test_families"


@replaces(WholeModel, "prefill")
def embeddings_instead_of_encoder_outputs(prefill: Any, self: Any, prompt: Any) -> Any:
    """The older way: rows scattered into the prompt's embeddings, and no input_ids."""
    values = dict(prompt)
    ids, given = values.pop("input_ids"), values.pop("mm_encoder_outputs")
    words = self.model.get_input_embeddings()(ids)
    rows = torch.cat([*given["image"].pooler_output]).to(words.dtype)
    places = (ids == self.model.config.image_token_id)[..., None]
    kept = {name: values[name] for name in ("logits_to_keep",) if name in values}
    embeds = words.masked_scatter(places, rows)
    return prefill(self, {"inputs_embeds": embeds, **kept})


@replaces(TransformersAdapter, "encode")
def deepstack_left_out(encode: Any, self: Any, prepared: Any) -> Features:
    """Zeros in their place: transformers itself notices if there are none."""
    found = encode(self, prepared).tensors
    deep = {name: torch.zeros_like(one) for name, one in found.items() if "deepstack" in name}
    return Features({**found, **deep})


@replaces(TransformersAdapter, "_rest")
def token_types_left_out(rest: Any, self: Any, prepared: Any) -> Any:
    found = rest(self, prepared)
    return {name: value for name, value in found.items() if name != "token_type_ids"}


@replaces(WholeModel, "prefill")
def rope_deltas_of_another_prompt(prefill: Any, self: Any, prompt: Any) -> Any:
    """As if an answer to another prompt were computed between the prefill and the first step."""
    found = prefill(self, prompt)
    self.model.base_model.rope_deltas = self.model.base_model.rope_deltas - 7
    return found


@replaces(auto_processor, "inputs")
def images_in_another_order(
    inputs: Any, processor: Any, prompt: Any, images: Any, *rate: Any
) -> Any:
    return inputs(processor, prompt, images[::-1], *rate)


@replaces(TransformersAdapter, "preprocess")
def one_image_instead_of_all(preprocess: Any, self: Any, media: Any, *given: Any) -> Any:
    return preprocess(self, replace(media, images=media.images[:1]), *given)


Change = Callable[[torch.Tensor], torch.Tensor]
Plant = Callable[[Patch], None]


def wrong_for_every_way(name: str, change: Change) -> Plant:
    """Another value of one input that describes the pictures, in all ways of answering."""
    return replaces(auto_processor, "inputs")(
        lambda inputs, *given: _changed(inputs(*given), name, change)
    )


def wrong_in_encode(name: str, change: Change) -> Plant:
    """Only the encoder gets another value, so only features that are computed apart are wrong."""

    @replaces(TransformersAdapter, "encode")
    def encoded(encode: Any, self: Any, prepared: Any) -> Features:
        inputs = _changed(dict(prepared.inputs), name, change)
        return encode(self, replace(prepared, inputs=inputs))

    return encoded


def wrong_for_positions(name: str, change: Change) -> Plant:
    """Only the language model of the decoupled way gets another value."""
    return replaces(TransformersAdapter, "_rest")(
        lambda rest, *given: _changed(rest(*given), name, change)
    )


def _changed(inputs: dict[str, Any], name: str, change: Change) -> dict[str, Any]:
    return {key: change(value) if key == name else value for key, value in inputs.items()}


def sides_swapped(sizes: torch.Tensor) -> torch.Tensor:
    """Height and width, or x and y, are the last two of [..., 2 or 3]."""
    return torch.cat([sizes[..., :-2], sizes[..., -2:].flip(-1)], dim=-1)


@replaces(media, "load")
def keys_of_pixels_without_shape(load: Any, *given: Any) -> Any:
    """A wide and a tall picture with the same values in the same order have one key."""
    found = load(*given)
    values = b"".join(image.tobytes() for image in found.images)
    return replace(found, digest=hashlib.blake2b(values).hexdigest())


FAULTS = (
    fault("embeddings for a Qwen", "qwen2_5_vl", "equal_decoupled",
          embeddings_instead_of_encoder_outputs, TESTS,
          "A Qwen gets embeddings instead of its encoder's outputs, so its positions are wrong.",
          "families"),
    fault("deepstack left out", "qwen3_vl", "equal_decoupled equal_features", deepstack_left_out,
          TESTS, "A Qwen3-VL's features are kept without those for its deeper layers.", "families"),
    fault("token types left out", "gemma3", "equal_decoupled", token_types_left_out, TESTS,
          "A Gemma is not told which tokens are of a picture and attend to each other.",
          "families"),
    fault("rope deltas of another prompt", "qwen2_5_vl", "equal_decoupled",
          rope_deltas_of_another_prompt, TESTS,
          "The steps of a Qwen use the positions that another prompt left.", "families"),
    fault("images in another order", "qwen2_5_vl", "pixels", images_in_another_order, TESTS,
          "A sample's pictures are shown in reverse order.", "families"),
    fault("one image instead of all", "smolvlm", "pixels", one_image_instead_of_all, TESTS,
          "A model of transformers is shown the first of five pictures.", "families"),
    fault("grid swapped everywhere", "qwen3_vl", "shapes",
          wrong_for_every_way("image_grid_thw", sides_swapped), TESTS,
          "Height and width of each picture's grid are swapped, for all ways.", "shapes"),
    fault("grid swapped in encode", "qwen2_vl", "shapes",
          wrong_in_encode("image_grid_thw", sides_swapped), TESTS,
          "The encoder gets height and width of each picture's grid swapped.", "shapes"),
    fault("grid swapped for positions", "glm4v", "shapes",
          wrong_for_positions("image_grid_thw", sides_swapped), TESTS,
          "Positions are computed from grids with height and width swapped.", "shapes"),
    fault("sizes swapped in encode", "llava_next", "answer",
          wrong_in_encode("image_sizes", sides_swapped), TESTS,
          "A LLaVA-NeXT removes the padding of a tall picture from a wide one.", "shapes"),
    fault("sizes swapped everywhere", "lighton_ocr", "answer",
          wrong_for_every_way("image_sizes", sides_swapped), TESTS,
          "Height and width of each picture are swapped, for all ways.", "shapes"),
    fault("pixel mask all ones", "idefics2", "shapes",
          wrong_in_encode("pixel_attention_mask", torch.ones_like), TESTS,
          "An Idefics 2 also encodes the padding of a smaller picture.", "shapes"),
    fault("pixel mask all ones everywhere", "idefics2", "shapes",
          wrong_for_every_way("pixel_attention_mask", torch.ones_like), TESTS,
          "All ways also encode the padding of a smaller picture.", "shapes"),
    fault("aspect ratio of a square", "mllama", "shapes",
          wrong_for_every_way("aspect_ratio_ids", torch.ones_like), TESTS,
          "A Mllama is told that each picture is one square tile.", "shapes"),
    fault("keys without shapes", "qwen2_5_vl", "", keys_of_pixels_without_shape,
          "media/test_load " + TESTS,
          "A wide and a tall picture with the same values have one key.", "shapes"),
)  # fmt: skip
