"""The tables of model types against transformers' mappings and its classes."""

from __future__ import annotations

import inspect

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


def test_the_known_types_are_those_of_transformers() -> None:
    assert families.known() == set(PICTURES)
    assert len(PICTURES) > 90  # the mapping was found


def test_the_text_types_are_those_of_transformers() -> None:
    wanted = set(TEXT) - set(PICTURES) - NOT_TEXT_ONLY
    assert {one for one in TEXT if families.reads_text_only(one)} == wanted
    assert len(wanted) > 100  # the mapping was found


@pytest.mark.loads
def test_a_seam_is_where_forward_takes_what_an_encoder_gave() -> None:
    for model_type, class_name in sorted(PICTURES.items()):
        found = getattr(transformers, class_name)
        takes_features = "mm_encoder_outputs" in inspect.signature(found.forward).parameters
        generate = getattr(found, "generate", None)
        pixels = inspect.signature(generate).parameters.get("pixel_values") if generate else None
        needs_pixels = pixels is not None and pixels.default is inspect.Parameter.empty
        wanted = takes_features and not needs_pixels
        assert (model_type not in families.HOOKED_ONLY) is wanted, model_type
