"""Which model answered: the file's claim and the evidence in its numbers.

Visual tokens (facts of the published checkpoints): LLaVA-1.5 576 per image at id 32000; Video-LLaVA
2,056 per clip of 8 frames at id 32001; EventGPT T + 577 for T event images.  Weights in 16 bits:
LLaVA-1.5 7.06 billion parameters, 13,472 MiB; Video-LLaVA has two more towers, 14,05x MiB.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.published.read.record_types import NAMES, AnswerRecord, Identity, ResultFile

KEY_FAMILY = {"egpt": "eventgpt", "eventgpt": "eventgpt", "llava": "llava",
              "videollava": "video_llava", "vl": "video_llava"}  # fmt: skip
PATTERNS = {"video_llava": r"video[-_ ]?llava", "llava": r"llava",
            "eventgpt": r"event[-_ ]?(gpt|chat)|egpt"}  # fmt: skip
IMAGE_TOKENS, IMAGE_ID = 576, 32000
CLIP_TOKENS, CLIP_ID = 2056, 32001
FRAMES = 8  # of a clip
EXPANSION = 2048  # the excess of a doubled prefill length
EVENT_TOKENS = 577  # of one event image; T images pool to T + 577
EVENT_TEXT = 59  # the scripts' prompt has 60 ids, one of them for the image
ONE_IMAGE = frozenset({EVENT_TEXT + EVENT_TOKENS, EVENT_TEXT + EVENT_TOKENS + 1})
WEIGHTS_MB = {"llava": (13_400, 13_560), "video_llava": (13_980, 14_150)}
_TEXT = range(5, 151)  # tokens of a short question with its template
_SHORT_TEXT = range(5, 61)
# of the benchmark (a single image only for LLaVA-1.5), and of any other use
USUAL_IMAGES: Mapping[str, Iterable[int]] = {"video_llava": (FRAMES,), "llava": (1, FRAMES)}
ANY_IMAGES: Mapping[str, Iterable[int]] = dict.fromkeys(("llava", "video_llava"),
                                                        range(1, 2 * FRAMES + 1))  # fmt: skip
Config = Mapping[str, object]
Evidence = tuple[str | None, str]  # a family, None if it is undetermined, and a sentence


def identities(
    models: Sequence[str],
    claimed: Mapping[str, str],
    records: Sequence[AnswerRecord],
    config: Config,
) -> dict[str, Identity]:
    """The claimed model of every name in the file, and the evidence.  If Video-LLaVA answered as
    EventGPT, the labels may be exchanged: then EventGPT's contexts show it, which could otherwise
    be one image of LLaVA-1.5 and a longer question."""
    found, exchanged = {}, {}
    for model in models:
        mine = [record for record in records if record.model == model]
        claim = claimed.get(model) or NAMES.get(KEY_FAMILY.get(model, ""), model)
        found[model] = _identity(model, claim, mine, config)
        contexts = {int(record.context) for record in mine if record.context}
        other = _wanted(model, claim) not in ("eventgpt", None) and not foreign(claim, model)
        if other and contexts and contexts <= ONE_IMAGE | {EVENT_TEXT + EVENT_TOKENS + 5}:
            evidence = f"a context of {max(contexts)} fits EventGPT's event images"
            exchanged[model] = Identity(claim, evidence, "eventgpt", False)
    swapped = any(_wanted(model, one.claimed) == "eventgpt" and one.family == "video_llava"
                  for model, one in found.items())  # fmt: skip
    return {**found, **exchanged} if swapped else found


def _identity(model: str, claim: str, records: Sequence[AnswerRecord], config: Config) -> Identity:
    if foreign(claim, model):
        return Identity(
            claim, f"{claim[:80]} is a model whose contexts and weights are unknown here"
        )
    wanted = _wanted(model, claim)
    found = [
        *_from_ids(records),
        *_from_config(model, config),
        *(_from_weights(records) if wanted != "eventgpt" else ()),
        *_from_contexts(wanted, records),
    ]
    if not found:
        return Identity(claim, "nothing in the file shows which checkpoint answered")
    family = next((family for family, _ in found if family), None)
    agrees = None if family is None or wanted is None else family == wanted
    return Identity(claim, "; ".join(sentence for _, sentence in found), family, agrees)


def _wanted(model: str, claim: str) -> str | None:
    """The family that a model should have: by its name, otherwise by its key."""
    return family_of(claim) or KEY_FAMILY.get(model)


def foreign(claimed: str, model: str) -> bool:
    """Whether the claimed name, which is more than the key, belongs to no known family, so that no
    rule about EventGPT, Video-LLaVA or LLaVA-1.5 applies."""
    found = (re.search(pattern, claimed.lower()) for pattern in PATTERNS.values())
    return claimed != model and not any(found)


def speaks_of_eventgpt(file: ResultFile) -> bool:
    """Whether the file can be evidence for a claim about EventGPT: both models are of known
    families, and the evidence shows neither another model as EventGPT nor EventGPT as the other."""
    draft, target = file.identities[file.draft], file.identities[file.target]
    if foreign(draft.claimed, file.draft) or foreign(target.claimed, file.target):
        return False
    return draft.family in (None, "eventgpt") and target.family != "eventgpt"


def family_of(name: str) -> str | None:
    """The family in a checkpoint's name; only its last part counts."""
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    return next((family for family, one in PATTERNS.items() if re.search(one, last)), None)


def _from_ids(records: Sequence[AnswerRecord]) -> Iterator[Evidence]:
    for ids in (record.ids or () for record in records):
        if images := ids.count(IMAGE_ID) // IMAGE_TOKENS:
            yield "llava", f"its ids have {images} x 576 image placeholders of LLaVA-1.5"
            return
        if ids.count(CLIP_ID) >= CLIP_TOKENS:
            yield "video_llava", "its ids have 2,056 video placeholders of Video-LLaVA"
            return


def _from_config(model: str, config: Config) -> Iterator[Evidence]:
    """A path or hub name in the settings, by a key that names this model."""
    own = r"event_?gpt|egpt" if KEY_FAMILY.get(model) == "eventgpt" else r"llava"
    for key, value in config.items() if model in KEY_FAMILY else ():
        named = re.search(own, key.lower()) and re.search("model|path", key.lower())
        family = family_of(value) if named and isinstance(value, str) else None
        if family:
            yield family, f"config.{key} is {str(value)[:80]!r}"
            return


def _from_weights(records: Sequence[AnswerRecord]) -> Iterator[Evidence]:
    """The memory of the weights; EventGPT's cannot be distinguished from LLaVA-1.5's."""
    for size in (record.sizes.get("memory_model_mb", 0.0) for record in records):
        for family, (low, high) in WEIGHTS_MB.items():
            if low <= size <= high:
                yield family, f"weights of {size:,.0f} MB fit {NAMES[family]}-7B"
                return


def _from_contexts(wanted: str | None, records: Sequence[AnswerRecord]) -> Iterator[Evidence]:
    """What the most frequent context fits, if all others fit the same family."""
    counts = Counter(int(record.context) for record in records if record.context)
    fits = {tokens: _from_context(tokens, wanted) for tokens in counts}
    if len({found and found[0] for found in fits.values()}) != 1:
        return
    for tokens, times in counts.most_common(1):
        if found := fits[tokens]:
            where = "" if len(counts) == 1 else f" ({times:,} of {counts.total():,} records)"
            yield found[0], found[1] + where


def _from_context(tokens: int, wanted: str | None) -> Evidence | None:
    """What a context shows: nothing if the named model could have it with another number of
    pictures or another question."""
    usual, extra = _fitting(tokens, USUAL_IMAGES), ""
    if not usual:
        usual = _fitting(tokens - EXPANSION, {"video_llava": (FRAMES,)})
        extra = f" (with {EXPANSION:,} counted twice)"
    family, words = next(iter(usual.items()), (None, ""))
    fits = (family, f"a context of {tokens:,}{extra} is {words}") if usual else None
    if wanted == "eventgpt":
        images = tokens - EVENT_TEXT - EVENT_TOKENS
        if 0 <= images <= 32:
            what = f"{images} event images" if images > 1 else "one event image, not five"
            return "eventgpt", f"a context of {tokens} fits {what}"
        return fits if family == "video_llava" else None
    possible = _fitting(tokens, ANY_IMAGES)
    if family == wanted or not (possible if wanted is None else wanted in possible):
        return fits
    names = sorted(possible, key=lambda one: one != wanted)
    models = ", or ".join(possible[one] for one in names)
    return None, f"a context of {tokens:,} is undetermined: {models}"


def _fitting(tokens: int, images: Mapping[str, Iterable[int]]) -> dict[str, str]:
    """The models that could have this context, with the first of these numbers of images."""
    found: dict[str, str] = {}
    for family, numbers in images.items():
        each = IMAGE_TOKENS if family == "llava" else CLIP_TOKENS // FRAMES
        for number in numbers:
            text = tokens - number * each
            if text in (_SHORT_TEXT if images is USUAL_IMAGES and family == "llava" else _TEXT):
                pictures = f"{number} image{'s' * (number > 1)} of {each} tokens"
                found.setdefault(family, f"{pictures} and {text} of text, as {NAMES[family]}")
    return found
