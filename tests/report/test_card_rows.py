"""A card's rows: every figure with its unit, and nothing said that is not known."""

from dataclasses import replace
from typing import Any

import pytest

from engine.models.checkpoint import ModelEntry
from engine.report import card_rows
from engine.types import ModelInfo, Tower

ENTRY = ModelEntry("m", "M", "llava", "image", "owner/m", None, "main", "float16", False)
CARD = ModelInfo(
    name="m", family="llava", checkpoint="owner/m", revision="c0ffee", dtype="float16", demo=False,
    digest="", source="Hugging Face hub: owner/m", headers="abc", parameters=7_063_427_072,
    stored_dtype="bfloat16", visual_tokens=2880, images=5, context_limit=4096,
    tower=Tower(hidden=1024, layers=24, heads=16, image_size=336, patch_size=14),
    missing=(), extra=("a", "b", "c", "d"),
)  # fmt: skip


def shown(card: ModelInfo | None, **entry: Any) -> dict[str, str]:
    return dict(card_rows.rows(replace(ENTRY, **entry), card))


def test_a_card_in_words() -> None:
    assert shown(CARD) == {
        "Name": "m",
        "Family": "llava, input: one frame",
        "From": "Hugging Face hub: owner/m",
        "Revision": "c0ffee",
        "Digest": "abc (names, shapes and sizes)",
        "Full hash": "not computed: that reads every byte",
        "Parameters": "7,063,427,072 (7.06 billion)",
        "Runs in": "float16, not quantized; stored as bfloat16",
        "Vision tower": "24 layers of 1,024, 16 heads, 336 px in patches of 14 px",
        "Visual tokens": "2,880 from 5 pictures",
        "Context limit": "4,096 tokens",
        "Missing weights": "none",
        "Extra weights": "4: a, b, c and 1 more",
    }


def test_what_is_not_known_is_not_made_up() -> None:
    unknown = ("revision", "parameters", "tower", "missing", "stored_dtype", "visual_tokens")
    rows = shown(replace(CARD, **dict.fromkeys(unknown)))
    assert "Revision" not in rows and "unknown dtype" in rows["Runs in"]
    for name in ("Parameters", "Vision tower", "Missing weights", "Visual tokens"):
        assert rows[name] == card_rows.LATER


def test_a_quantized_model_says_so_here_or_not() -> None:
    assert shown(None, quantization="4bit")["Runs in"] == "float16 4bit"
    rows = shown(replace(CARD, quantization="4bit", digest="d" * 32), quantization="4bit")
    assert rows["Runs in"].startswith("float16, 4bit;") and rows["Full hash"] == "d" * 32


@pytest.mark.parametrize(
    ("number", "words"), [(950, "950"), (3_061_760, "3,061,760 (3.06 million)")]
)
def test_parameters(number: int, words: str) -> None:
    assert card_rows.parameters(number) == words


def test_what_is_not_installed_tells_the_size_of_its_download() -> None:
    assert "Download" not in shown(None)
    assert shown(None, download="7.5 GB")["Download"] == "about 7.5 GB"
