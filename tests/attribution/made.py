"""Explanations made by hand: figures that a test can work out, and no model."""

from typing import Any

from msgspec.structs import replace

from engine.attribution.explained import ExplainOptions, ExplainRequest, Explanation
from engine.storage.explanations import CellLoss, Chance, Cost, MomentLoss
from engine.types import RunRequest, Sample

SMALL = ExplainOptions(grid=2, side=1, coarse=0)
NO_CHANCE = Chance(0.4, 200, "No part of the picture matters more than chance (p = 0.40).", 0.5)
CLEAR = Chance(0.01, 200, "One part matters more than chance (p = 0.01).", 0.5)
UNLIKELY = Chance(
    0.01, 200, "The model gives a token of these words a probability of 0.0001.", 1e-4
)


def explanation(run: RunRequest | None = None, **more: Any) -> Explanation:
    """Of the words "a car": 2 x 2 cells, of which the right one at the bottom carries most."""
    run = run or RunRequest(Sample("s", "q"), "tiny-llava", "What is it?")
    values = {(0, 0): 0.0, (1, 0): -1.0, (0, 1): 0.5, (1, 1): 2.0}
    found = Explanation(
        request=ExplainRequest(run, "a car", options=SMALL),
        answer="I see a car.",
        words="a car",
        said=True,
        token_ids=(5, 6, 7, 8),
        scored=(2, 4),
        logprob=-0.7,
        cells=tuple(cell(column, row, value) for (column, row), value in values.items()),
        moments=(
            MomentLoss(0, "event image 1", "replaced", 0.25),
            MomentLoss(1, "event image 2", "replaced", 1.5),
        ),
        chance=CLEAR,
        cost=Cost(5, 2, 0.5),
        ms=500.0,
        removal="blur",
    )
    return replace(found, **more)


def cell(column: int, row: int, nats: float) -> CellLoss:
    box = (column / 2, row / 2, (column + 1) / 2, (row + 1) / 2)
    return CellLoss(box, box, nats, True)
