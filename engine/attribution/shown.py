"""The pictures that a run shows, ready to be changed.

Boundary: reads the sample's files; knows no models.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine import media
from engine.attribution.explained import Fill
from engine.attribution.occlusion import Occlusion
from engine.errors import MediaError
from engine.types import Media, MediaKind, RunRequest


def shown(run: RunRequest, kind: MediaKind, fill: Fill = "blur") -> Occlusion:
    """The pictures of the run for a model of this kind; MediaError if they cannot be read."""
    plain = media.load(run.sample, kind, run)
    return Occlusion(plain, fill, _from_events(run, plain))


def _from_events(run: RunRequest, plain: Media) -> bool:
    """Whether the pictures are those that this project draws from the sample's raw events."""
    if plain.kind != "events" or plain.extent is not None or run.sample.events is None:
        return plain.extent is not None
    try:
        drawn = media.load(replace(run.sample, event_images=()), "events", run)
    except MediaError:
        return False
    return len(drawn.images) == len(plain.images) and all(
        map(np.array_equal, drawn.images, plain.images)
    )
