"""Checks whether two models share a vocabulary.

Boundary: a tokenizer's pieces in, a digest out.  Markers that a family adds to its prompt (<image>,
<ev_patch> ...) are excluded: no answer holds one, and each family appends different ones.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from engine.errors import BadInput
from engine.models.adapter import Adapter


def digest(tokenizer: Any) -> str:
    """A digest of the ids of all pieces that an answer can contain."""
    own = {tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token}
    markers = {
        str(token)
        for token in tokenizer.added_tokens_decoder.values()
        if token.special and str(token) not in own
    }
    pieces = sorted(
        (i, piece) for piece, i in tokenizer.get_vocab().items() if piece not in markers
    )
    return hashlib.blake2b(json.dumps(pieces).encode(), digest_size=16).hexdigest()


def refuse_other(draft: Adapter, target: Adapter) -> None:
    """BadInput unless both share the vocabulary and the ids that end an answer."""
    one, two = digest(draft.tokenizer), digest(target.tokenizer)
    if one != two:
        raise BadInput(
            f"{draft.info.name} cannot draft for {target.info.name}: their vocabularies differ "
            f"({one[:8]} and {two[:8]}), so their token ids do not match; choose models that "
            "share a tokenizer, or lookup."
        )
    if set(draft.eos_ids) != set(target.eos_ids):
        raise BadInput(
            f"{draft.info.name} cannot draft for {target.info.name}: their answers end with "
            f"different ids ({draft.eos_ids} and {target.eos_ids}); choose another draft or lookup."
        )
