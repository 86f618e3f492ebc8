"""Models by their labels in the engine's sentences, which have the names of models.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.models import registry


def labelled(text: str, names: Iterable[str] = ()) -> str:
    """The text with the label of each model of models.toml and of `names`, such as variants.

    Commands (in backticks) and paths keep the name, because they need it.
    """
    labels = {item.name: item.label for item in registry.entries()}
    labels |= {name: registry.label(name) for name in names}
    either = "|".join(map(re.escape, sorted(labels, key=len, reverse=True)))
    pattern = rf"`[^`]*`|(?<![\w@/.-])(?:{either})(?![\w@/-]|\.\w)"
    return re.sub(pattern, lambda found: labels.get(found[0], found[0]), text)
