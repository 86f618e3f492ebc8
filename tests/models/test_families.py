"""The tables of model types against transformers' mappings and its classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import transformers
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as TEXT,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as PICTURES,
)

from engine.models import families

NOT_TEXT_ONLY = {"phi4_multimodal"}  # reads pictures, but not through the auto class


def model_class(model_type: str) -> type:
    found: type = getattr(transformers, PICTURES[model_type])
    return found


def takes(function: Callable[..., object], name: str) -> bool:
    return name in inspect.signature(function).parameters


def needs_pixels(cls: type) -> bool:
    generate = getattr(cls, "generate", None)
    found = inspect.signature(generate).parameters.get("pixel_values") if generate else None
    return found is not None and found.default is inspect.Parameter.empty


def test_the_known_types_are_those_of_transformers() -> None:
    assert families.known() == set(PICTURES)
    assert len(PICTURES) > 90  # the mapping was found


def test_the_text_types_are_those_of_transformers() -> None:
    wanted = set(TEXT) - set(PICTURES) - NOT_TEXT_ONLY
    assert {one for one in TEXT if families.reads_text_only(one)} == wanted
    assert len(wanted) > 100  # the mapping was found


@pytest.mark.loads
def test_a_seam_is_where_forward_takes_what_an_encoder_gave() -> None:
    for model_type in sorted(PICTURES):
        cls = model_class(model_type)
        wanted = takes(cls.forward, "mm_encoder_outputs") and not needs_pixels(cls)  # type: ignore[attr-defined]
        assert (model_type not in families.HOOKED_ONLY) is wanted, model_type


def test_models_whose_prompts_hold_one_picture() -> None:
    assert "blip-2" in families.ONE_PICTURE and "mllama" not in families.ONE_PICTURE
    assert families.known() > families.ONE_PICTURE | families.HOOKED_ONLY
