"""A dataset root with a few records, for runs with tiny models."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.conftest import picture


def root(base: Path, count: int = 4, broken: Sequence[int] = (), raw: bool = False) -> Path:
    """`count` records of sequences of their own, each with 5 event images and 10 frames.

    The first event image and the frames of a broken record are no pictures.  `raw`: each record has
    raw events too.
    """
    records = [_record(base, index) for index in range(count)]
    for index in broken:
        (base / "event_image" / f"q{index}" / "000000_0.png").write_bytes(b"odd")
        for frame in (base / "video" / f"q{index}" / "000000").iterdir():
            frame.write_bytes(b"odd")
    if raw:
        events, draw = base / "event_npy" / "a.npy", np.random.default_rng(0)
        events.parent.mkdir()
        table = {key: draw.integers(0, 30, 2_000) for key in "xy"}
        table |= {"t": np.arange(2_000) * 25, "p": draw.integers(0, 2, 2_000)}
        np.save(events, np.array(table, dtype=object), allow_pickle=True)
        records = [record | {"event_data": "a.npy"} for record in records]
    (base / "EventGPT_Instruction_Subset.json").write_text(json.dumps(records))
    return base


def _record(base: Path, index: int) -> dict[str, Any]:
    for image in range(5):
        picture(base / "event_image" / f"q{index}" / f"000000_{image}.png", 10 * index + image)
    for frame in range(27, 37):
        picture(base / "video" / f"q{index}" / "000000" / f"{frame:06d}.png", 10 * index + frame)
    return {
        "id": f"id-{index}",
        "split": f"q{index}",
        "event_image": [f"q{index}/000000_{image}.png" for image in range(5)],
        "video_data": f"q{index}/000000",
        "conversations": [
            {"from": "human", "value": "<event>\nWhat is it?"},
            {"from": "gpt", "value": "A road."},
        ],
    }
