"""Which model answered: the file's claim and the evidence in its numbers.

Visual tokens (facts of the published checkpoints): LLaVA-1.5 576 per image at id 32000; Video-LLaVA
2,056 per clip of 8 frames at id 32001; EventGPT T + 577 for T event images.  Weights in 16 bits:
LLaVA-1.5 7.06 billion parameters, 13,472 MiB; Video-LLaVA has two more towers, 14,05x MiB.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from engine.published.read.record_types import NAMES, AnswerRecord, Identity, ResultFile

KEY_FAMILY = {
    "egpt": "eventgpt",
    "eventgpt": "eventgpt",
    "llava": "llava",
    "videollava": "video_llava",
    "vl": "video_llava",
}
IMAGE_TOKENS, IMAGE_ID = 576, 32000
CLIP_TOKENS, CLIP_ID = 2056, 32001
FRAMES = 8  # of a clip
MOST_IMAGES = 32  # of events
EXPANSION = 2048  # the excess of a doubled prefill length
EVENT_TOKENS = 577  # of one event image; T images pool to T + 577
EVENT_TEXT = 59  # the scripts' prompt has 60 ids, one of them for the image
ONE_IMAGE = frozenset({EVENT_TEXT + EVENT_TOKENS, EVENT_TEXT + EVENT_TOKENS + 1})
FIVE_IMAGES = frozenset({EVENT_TEXT + EVENT_TOKENS + 5})
WEIGHTS_MB = {"llava": (13_400, 13_560), "video_llava": (13_980, 14_150)}
DISPUTED = ", label disputed"  # the evidence shows another model
_TEXT = range(5, 151)  # tokens of a short question with its template
Evidence = tuple[str | None, str]


def identities(
    models: Sequence[str],
    claimed: Mapping[str, str],
    records: Sequence[AnswerRecord],
    config: Mapping[str, object],
) -> dict[str, Identity]:
    """Every model's, by its name in the file."""
    rows = {model: [record for record in records if record.model == model] for model in models}
    found = {m: identify(m, claimed.get(m), rows[m], config) for m in models}
    return found | _exchanged(found, rows)


def identify(
    model: str, claimed: str | None, records: Sequence[AnswerRecord], config: Mapping[str, object]
) -> Identity:
    """The claimed model and the evidence in the file."""
    claim = claimed or NAMES.get(KEY_FAMILY.get(model, ""), model)
    if foreign(claim, model):
        return Identity(
            claim, f"{claim[:80]} is a model whose contexts and weights are unknown here"
        )
    wanted = _wanted(model, claim)
    found = [
        *_from_ids(records),
        *_from_config(model, config),
        *(_from_weights(records) if wanted != "eventgpt" else []),
        *_from_context(wanted, records),
    ]
    if not found:
        return Identity(claim, "nothing in the file shows which checkpoint answered")
    family = next((family for family, _ in found if family), None)
    agrees = None if family is None or wanted is None else family == wanted
    return Identity(claim, "; ".join(sentence for _, sentence in found), family, agrees)


def _wanted(model: str, claim: str) -> str | None:
    """The family that a model should have: by its name, otherwise by its key."""
    return family_of(claim) or KEY_FAMILY.get(model)


def _exchanged(
    found: Mapping[str, Identity], rows: Mapping[str, Sequence[AnswerRecord]]
) -> dict[str, Identity]:
    """Identities if the labels are exchanged: the other label then has EventGPT's contexts, which
    could otherwise be one image of LLaVA-1.5 and a longer question."""
    wanted = {model: _wanted(model, one.claimed) for model, one in found.items()}
    swapped = any(wanted[model] == "eventgpt" and one.family == "video_llava"
                  for model, one in found.items())  # fmt: skip
    exchanged = {}
    for model, one in found.items():
        tokens = {int(record.context) for record in rows[model] if record.context}
        other = wanted[model] not in ("eventgpt", None) and not foreign(one.claimed, model)
        if swapped and other and tokens and tokens <= ONE_IMAGE | FIVE_IMAGES:
            evidence = f"a context of {max(tokens)} fits EventGPT's event images"
            exchanged[model] = Identity(one.claimed, evidence, "eventgpt", False)
    return exchanged


def foreign(claimed: str, model: str) -> bool:
    """Whether the claimed name belongs to no known family, so that no rule about EventGPT,
    Video-LLaVA or LLaVA-1.5 applies.  A key is not a name."""
    return claimed != model and _family_in(claimed) is None


def speaks_of_eventgpt(file: ResultFile) -> bool:
    """Whether the file can be evidence for a claim about EventGPT: both models are of known
    families, and the evidence shows neither another model as EventGPT nor EventGPT as the other."""
    pair = [(model, file.identities[model]) for model in (file.draft, file.target)]
    if any(foreign(one.claimed, model) for model, one in pair):
        return False
    return pair[0][1].family in (None, "eventgpt") and pair[1][1].family != "eventgpt"


def shown(identity: Identity, corrected: bool = True) -> str:
    """The shown name: corrected by the evidence if there is any, otherwise the label."""
    return NAMES.get(identity.family or "", identity.claimed) if corrected else identity.claimed


def disputed(identity: Identity, corrected: bool) -> str:
    """The suffix of a recorded label that the evidence contradicts, otherwise ""."""
    return DISPUTED if identity.agrees is False and not corrected else ""


def family_of(name: str) -> str | None:
    """The family in a checkpoint's name; only its last part counts."""
    return _family_in(name.rstrip("/").rsplit("/", 1)[-1])


def _family_in(name: str) -> str | None:
    for pattern, family in (
        (r"video[-_ ]?llava", "video_llava"),
        (r"llava", "llava"),
        (r"event[-_ ]?(gpt|chat)|egpt", "eventgpt"),
    ):
        if re.search(pattern, name.lower()):
            return family
    return None


def _from_ids(records: Sequence[AnswerRecord]) -> list[Evidence]:
    for record in records:
        if record.ids and record.ids.count(IMAGE_ID) >= IMAGE_TOKENS:
            images = record.ids.count(IMAGE_ID) // IMAGE_TOKENS
            return [("llava", f"its ids have {images} x 576 image placeholders of LLaVA-1.5")]
        if record.ids and record.ids.count(CLIP_ID) >= CLIP_TOKENS:
            return [("video_llava", "its ids have 2,056 video placeholders of Video-LLaVA")]
    return []


def _from_config(model: str, config: Mapping[str, object]) -> list[Evidence]:
    """A path or hub name in the settings, by a key that names this model."""
    names: tuple[str, ...] = ("videollava", "video_llava", "llava") if model in KEY_FAMILY else ()
    if KEY_FAMILY.get(model) == "eventgpt":
        names = ("eventgpt", "egpt")
    for key, value in config.items():
        low = key.lower()
        named = any(name in low for name in names)
        if named and isinstance(value, str) and ("model" in low or "path" in low):
            family = family_of(value)
            if family:
                return [(family, f"config.{key} is {value[:80]!r}")]
    return []


def _from_weights(records: Sequence[AnswerRecord]) -> list[Evidence]:
    """The memory of the weights; EventGPT's cannot be distinguished from LLaVA-1.5's."""
    for record in records:
        size = record.sizes.get("memory_model_mb")
        for family, (low, high) in WEIGHTS_MB.items():
            if size is not None and low <= size <= high:
                return [(family, f"weights of {size:,.0f} MB fit {NAMES[family]}-7B")]
    return []


def _from_context(wanted: str | None, records: Sequence[AnswerRecord]) -> list[Evidence]:
    """What the most frequent context fits, if all others fit the same family."""
    counts = Counter(int(record.context) for record in records if record.context)
    fits = _event_context if wanted == "eventgpt" else partial(_other_context, wanted=wanted)
    found = {tokens: fits(tokens) for tokens in counts}
    families = {family for evidence in found.values() for family, _ in evidence}
    if len(families) != 1 or not all(found.values()):
        return []
    ((tokens, times),) = counts.most_common(1)
    ((family, sentence),) = found[tokens]
    where = "" if len(counts) == 1 else f" ({times:,} of {counts.total():,} records)"
    return [(family, sentence + where)]


def _event_context(tokens: int) -> list[Evidence]:
    """EventGPT, or Video-LLaVA if no number of event images fits."""
    images = tokens - EVENT_TEXT - EVENT_TOKENS
    if images in (0, 1):
        return [("eventgpt", f"a context of {tokens} fits one event image, not five")]
    if 1 < images <= MOST_IMAGES:
        return [("eventgpt", f"a context of {tokens} fits {images} event images")]
    return [one for one in _usual(tokens) if one[0] == "video_llava"]


def _other_context(tokens: int, wanted: str | None) -> list[Evidence]:
    """What a context shows: nothing if the named model could have it with another number of
    pictures or another question."""
    usual = _usual(tokens)
    mine = [one for one in usual if one[0] == wanted]
    possible = [words for family, words in _possible(tokens) if wanted in (None, family)]
    if mine or not possible:
        return mine or usual
    others = [words for family, words in _possible(tokens) if words not in possible]
    return [(None, f"a context of {tokens:,} is undetermined: {', or '.join(possible + others)}")]


def _usual(tokens: int) -> list[Evidence]:
    """By the inputs of the benchmark: 8 frames, or a single image for LLaVA-1.5."""
    for doubled in (0, EXPANSION):
        if tokens - doubled - CLIP_TOKENS in _TEXT:
            extra = f" (with {EXPANSION:,} counted twice)" if doubled else ""
            sentence = f"a context of {tokens:,}{extra} fits Video-LLaVA's 2,056 visual tokens"
            return [("video_llava", sentence)]
    for images in (1, FRAMES):
        text = tokens - images * IMAGE_TOKENS
        if text in range(5, 61):
            what = _pictures(images, IMAGE_TOKENS, text)
            return [("llava", f"a context of {tokens:,} is {what}, as LLaVA-1.5")]
    return []


def _possible(tokens: int) -> list[tuple[str, str]]:
    """(family, description) of the models that could have this context."""
    found = []
    for family, each in (("llava", IMAGE_TOKENS), ("video_llava", CLIP_TOKENS // FRAMES)):
        for images in range(1, 2 * FRAMES + 1):
            if tokens - images * each in _TEXT:
                words = _pictures(images, each, tokens - images * each)
                found.append((family, f"{words}, as {NAMES[family]}"))
                break
    return found


def _pictures(images: int, each: int, text: int) -> str:
    return f"{images} image{'s' * (images > 1)} of {each} tokens and {text} of text"
