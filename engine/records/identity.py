"""Who answered: what a file claims, and what its numbers show.

Visual tokens (facts of the published checkpoints): LLaVA-1.5 576 per image at id 32000; Video-LLaVA
2,056 per clip of 8 frames at id 32001; EventGPT T + 577 for T event images.  Weights in 16 bits:
LLaVA-1.5 7.06 billion parameters, 13,472 MiB; Video-LLaVA two vision towers more, 14,05x MiB.

Boundary: says what the evidence is; audit.py says whether it contradicts the label.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from engine.records.types import NAMES, Identity, Record

KEY_FAMILY = {
    "egpt": "eventgpt",
    "eventgpt": "eventgpt",
    "llava": "llava",
    "videollava": "video_llava",
    "vl": "video_llava",
}
IMAGE_TOKENS, IMAGE_ID = 576, 32000
CLIP_TOKENS, CLIP_ID = 2056, 32001
EXPANSION = 2048  # what a doubled prefill length has too much
EVENT_TOKENS = 577  # of one event image; T images pool to T + 577
EVENT_TEXT = 59  # of the scripts' prompt of 60 ids, one stands for the image
WEIGHTS_MB = {"llava": (13_400, 13_560), "video_llava": (13_980, 14_150)}
DISPUTED = ", label disputed"  # the audit's evidence names another model
_TEXT = range(5, 151)  # tokens of a short question with its template
Evidence = tuple[str | None, str]


def identify(
    model: str, claimed: str | None, records: Sequence[Record], config: Mapping[str, object]
) -> Identity:
    """What is claimed and what the file shows; "nothing" is said in words too."""
    claim = claimed or NAMES.get(KEY_FAMILY.get(model, ""), model)
    found = [
        *_from_ids(records),
        *_from_config(model, config),
        *_from_weights(model, records),
        *_from_context(model, records),
    ]
    if not found:
        return Identity(claim, "nothing in the file shows which checkpoint answered")
    family = next((family for family, _ in found if family), None)
    wanted = family_of(claim) or KEY_FAMILY.get(model)
    agrees = None if family is None or wanted is None else family == wanted
    return Identity(claim, "; ".join(sentence for _, sentence in found), family, agrees)


def shown(identity: Identity, corrected: bool = True) -> str:
    """Whom a model is shown as: corrected by the evidence where there is any, else by the label."""
    return NAMES.get(identity.family or "", identity.claimed) if corrected else identity.claimed


def disputed(identity: Identity, corrected: bool) -> str:
    """What stands behind a label as recorded where the evidence names another model, else ""."""
    return DISPUTED if identity.agrees is False and not corrected else ""


def family_of(name: str) -> str | None:
    """The family that a checkpoint's name speaks of: its last part alone counts."""
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    for pattern, family in (
        (r"video[-_ ]?llava", "video_llava"),
        (r"llava", "llava"),
        (r"event[-_ ]?(gpt|chat)|egpt", "eventgpt"),
    ):
        if re.search(pattern, last):
            return family
    return None


def _from_ids(records: Sequence[Record]) -> list[Evidence]:
    for record in records:
        if record.ids and record.ids.count(IMAGE_ID) >= IMAGE_TOKENS:
            images = record.ids.count(IMAGE_ID) // IMAGE_TOKENS
            return [("llava", f"its ids hold {images} x 576 image placeholders of LLaVA-1.5")]
        if record.ids and record.ids.count(CLIP_ID) >= CLIP_TOKENS:
            return [("video_llava", "its ids hold 2,056 video placeholders of Video-LLaVA")]
    return []


def _from_config(model: str, config: Mapping[str, object]) -> list[Evidence]:
    """A path or hub name in the settings, by a key that names this model."""
    for key, value in config.items():
        low = key.lower()
        named = any(name in low for name in _spoken(model))
        if named and isinstance(value, str) and ("model" in low or "path" in low):
            family = family_of(value)
            if family:
                return [(family, f"config.{key} is {value[:80]!r}")]
    return []


def _spoken(model: str) -> tuple[str, ...]:
    if KEY_FAMILY.get(model) == "eventgpt":
        return ("eventgpt", "egpt")
    return ("videollava", "video_llava", "llava") if model in KEY_FAMILY else ()


def _from_weights(model: str, records: Sequence[Record]) -> list[Evidence]:
    """The memory that the weights took; EventGPT's is no different from LLaVA-1.5's."""
    if KEY_FAMILY.get(model) == "eventgpt":
        return []
    for record in records:
        size = record.sizes.get("memory_model_mb")
        for family, (low, high) in WEIGHTS_MB.items():
            if size is not None and low <= size <= high:
                return [(family, f"weights of {size:,.0f} MB are those of {NAMES[family]}-7B")]
    return []


def _from_context(model: str, records: Sequence[Record]) -> list[Evidence]:
    contexts = {int(r.context) for r in records if r.context}
    if len(contexts) != 1:
        return []
    tokens = contexts.pop()
    if KEY_FAMILY.get(model) == "eventgpt":
        images = tokens - EVENT_TEXT - EVENT_TOKENS
        if images in (0, 1):
            return [("eventgpt", f"a context of {tokens} is that of one event image, not of five")]
        return [("eventgpt", f"a context of {tokens} fits {images} event images")] * (
            1 < images <= 32
        )
    return _other_context(tokens)


def _other_context(tokens: int) -> list[Evidence]:
    for doubled in (0, EXPANSION):
        if tokens - doubled - CLIP_TOKENS in _TEXT:
            extra = f" (with {EXPANSION:,} counted twice)" if doubled else ""
            sentence = f"a context of {tokens:,}{extra} fits Video-LLaVA's 2,056 visual tokens"
            return [("video_llava", sentence)]
    images, text = divmod(tokens, IMAGE_TOKENS)
    if 1 <= images <= 16 and text in range(5, 61):
        what = f"{images} image{'s' * (images > 1)} of 576 tokens"
        return [("llava", f"a context of {tokens:,} is {what} and {text} of text, as LLaVA-1.5")]
    return []
