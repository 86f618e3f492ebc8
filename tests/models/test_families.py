"""The tables of model types against transformers' mappings and its classes."""

from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as TEXT,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as PICTURES,
)

from engine.models import families

NOT_TEXT_ONLY = {"phi4_multimodal"}  # reads pictures, but not through the auto class


def test_the_text_types_are_those_of_transformers() -> None:
    wanted = set(TEXT) - set(PICTURES) - NOT_TEXT_ONLY
    assert {one for one in TEXT if families.reads_text_only(one)} == wanted
    assert len(wanted) > 100  # the mapping was found
