"""A variant of a model: the same checkpoint with another input, dtype or quantization.

It is named NAME@WORD[+WORD...], as in llava-demo@events+float16, and is an entry like any other, so
that requests, rows, plans, keys and certificates need no second concept.  A word that is the
entry's own value is dropped, so llava-demo@image is llava-demo.
"""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args

from engine.errors import BadInput, UnknownModel
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.models.families import QUANTIZATIONS
from engine.quoting import quoted
from engine.types import VARIANT_MARK, MediaKind

JOIN = "+"
SHOWS: tuple[MediaKind, ...] = get_args(MediaKind)
# Field of ModelEntry -> its words, in the order of a canonical name.
WORDS: Mapping[str, tuple[str, ...]] = {
    "kind": SHOWS,
    "dtype": tuple(DTYPE_BYTES),
    "quantization": QUANTIZATIONS,
}
FIELDS: Mapping[str, str] = {word: field for field, words in WORDS.items() for word in words}
LABELS: Mapping[str, str] = {kind: f"shown {kind}" for kind in SHOWS}
BETWEEN = " · "  # in a label; sentences list labels with commas
MEDIA: Mapping[str, str] = {"events": "event images", "video": "8 frames", "image": "one picture"}
# How a family takes pictures, by the kind of media that it usually gets.
TAKEN: Mapping[str, str] = {
    "events": "event images",
    "video": "the frames of a clip",
    "image": "separate images",
}


def base_name(name: str) -> str:
    return name.partition(VARIANT_MARK)[0]


def derived(base: ModelEntry, values: Mapping[str, str | None]) -> ModelEntry:
    """The variant of a models.toml entry with these values; the entry itself if none differs."""
    changed: dict[str, Any] = {
        field: value
        for field in WORDS
        if (value := values.get(field)) is not None and value != getattr(base, field)
    }
    if not changed:
        return base
    name = f"{base.name}{VARIANT_MARK}{JOIN.join(changed.values())}"
    return replace(base, name=name, label=_label(base, changed.values()), of=base, **changed)


def _label(base: ModelEntry, words: Iterable[str]) -> str:
    return BETWEEN.join([base.label, *(LABELS.get(word, word) for word in words)])


def parsed(name: str, base: ModelEntry) -> ModelEntry:
    """The variant that `name` means; BadInput for unknown or contradictory words."""
    values: dict[str, str] = {}
    for word in name.partition(VARIANT_MARK)[2].split(JOIN):
        if word not in FIELDS:
            near = difflib.get_close_matches(word[:80], FIELDS, n=1, cutoff=0.6)
            hint = f"did you mean {quoted(near[0])}?" if near else f"known are {', '.join(FIELDS)}."
            raise UnknownModel(f"{quoted(name)} holds the unknown word {quoted(word)}: {hint}")
        if base.server and FIELDS[word] != "kind":
            raise BadInput(
                f"{quoted(name)} names {word}, but {base.server.host} decides its dtype: leave it "
                "out."
            )
        before = values.setdefault(FIELDS[word], word)
        if before != word:
            what = FIELDS[word].replace("kind", "input")
            raise BadInput(f"{quoted(name)} names two {what}s ({before} and {word}): keep one.")
    return derived(base, values)


def named(name: str, known: Mapping[str, ModelEntry]) -> ModelEntry | None:
    """The entry or variant with this name, from entries by name; None if there is none."""
    base = known.get(base_name(name))
    if base is None or name == base.name:
        return base
    with suppress(BadInput):
        return parsed(name, base)
    return None


def loaded(item: ModelEntry) -> ModelEntry:
    """The entry whose weights `item` uses: what is shown is chosen run by run."""
    if item.of is None:
        return item
    return derived(item.of, {"dtype": item.dtype, "quantization": item.quantization})


def labelled(entries: Sequence[ModelEntry]) -> tuple[ModelEntry, ...]:
    """The entries; labels of several columns of one model say only in what they differ."""
    found = []
    for item in entries:
        group = [one for one in entries if base_name(one.name) == base_name(item.name)]
        differing = [field for field in WORDS if len({getattr(one, field) for one in group}) > 1]
        words = [value for field in differing if (value := getattr(item, field)) is not None]
        label = _label(item.of or item, words)
        found.append(item if len(group) == 1 else replace(item, label=label))
    return tuple(found)


def by_label(text: str, entries: Iterable[ModelEntry]) -> ModelEntry | None:
    """The variant with this label, as in a link; None if it is no label of a variant."""
    words = {LABELS.get(word, word): word for word in FIELDS}
    for base in entries:
        rest = text.removeprefix(f"{base.label}{BETWEEN}").split(BETWEEN)
        if text.startswith(f"{base.label}{BETWEEN}") and all(one in words for one in rest):
            return derived(base, {FIELDS[words[one]]: words[one] for one in rest})
    return None


def notes(item: ModelEntry, usual: MediaKind, trained: Collection[str] = ()) -> tuple[str, ...]:
    """What to know of an answer to another input than the family's usual one.  `trained`: what a
    demo checkpoint was shown in training; if empty, what its entry shows."""
    found, known = [], set(SHOWS).intersection(trained) or {(item.of or item).kind}
    if item.kind != usual:
        found.append(
            f"Shown {MEDIA[item.kind]} as {TAKEN[usual]}: models of this family usually get "
            f"{MEDIA[usual]}."
        )
    if item.demo and item.kind not in known:
        found.append(
            f"This demo checkpoint was not trained on {MEDIA[item.kind]}: its answer says nothing "
            "about the model."
        )
    return tuple(found)
