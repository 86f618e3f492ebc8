"""The options, the request, the cells and the result of an explanation: what an answer rests on;
and explanations kept with a run, as the same types.

All losses are in nats: log P(words | plain input) - log P(words | changed input), where P is the
model's own probability of the words' tokens, given the tokens before them.  Boxes are shares of the
picture; event pictures of different sizes are shares of the largest, because all begin at the same
corner of the sensor.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from engine.errors import BadInput, StoreError
from engine.media_options import check_range
from engine.pipeline import Watcher
from engine.prompts import check_question
from engine.quoting import cut, quoted
from engine.storage import explanations
from engine.storage.explanations import (
    KEPT,
    CellLoss,
    Cost,
    ExplainedWords,
    Removal,
    StoredExplanation,
)
from engine.types import Box, Image, RunRequest

Fill = Literal["blur", "neutral"]  # of pictures and frames; events are dropped
measured_ms: dict[str, float] = {}  # model -> milliseconds per changed input, newest
FILLS: tuple[Fill, ...] = get_args(Fill)
MIN_GRID, MAX_GRID = 2, 32
MAX_BATCH = 64
MAX_WORDS = 2_000  # characters
TO_EXPLAIN = "The text to explain"
_NEAR = (-1, 0, 1)
WEIGHT = {(y, x): math.exp(-(y * y + x * x) / 2) for y in _NEAR for x in _NEAR}
REMOVED: dict[Removal, str] = {
    "blur": "blurred",
    "neutral": "filled with the picture's mean colour",
    "events": "emptied of its events",
    "painted": "painted with the background",
}
OTHER_ANSWER = (
    "{} answers sample {} otherwise now than in the run, so the explanation does not belong to it: "
    "leave --run out, or run the samples again."
)


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """The map's cells, what is removed with each, and how much is computed.

    A cell is removed with its neighbourhood: a box of `side` cells of the fine map around the
    cell's centre; an even `side` takes half a cell more on each side.  A coarse cell is removed
    with the same box, or with its own if that is larger.
    """

    grid: int = 8  # cells per side of the fine map
    side: int = 3  # cells per side that are removed together
    fill: Fill = "blur"
    coarse: int = 4  # cells per side of the first map; 0: the whole fine map at once
    refined: int = 4  # coarse cells whose fine cells are computed; without `coarse` unused
    time: bool = True  # also frames or event images, one by one
    batch: int = 8  # changed inputs that are encoded together

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("grid", self.grid, MIN_GRID, MAX_GRID),
            ("side", self.side, 1, self.grid),
            ("coarse", self.coarse, 0, self.grid),
            ("refined", self.refined, 0, MAX_GRID**2),
            ("batch", self.batch, 1, MAX_BATCH),
        ):
            check_range(name, value, low, high)
        if self.fill not in FILLS:
            raise BadInput(f"fill is {quoted(self.fill)}: choose one of {', '.join(FILLS)}.")
        if self.coarse and self.grid % self.coarse:
            fitting = [str(one) for one in range(1, self.grid + 1) if self.grid % one == 0]
            raise BadInput(
                f"coarse is {self.coarse}, which does not divide a grid of {self.grid}: choose "
                f"one of {', '.join(fitting)}, or 0 for the whole fine map."
            )


def coarse_cells(options: ExplainOptions) -> tuple[CellLoss, ...]:
    """The first map's cells, row by row, without losses; () without it, or if it is as fine."""
    return () if options.coarse in (0, options.grid) else _cells(options, options.coarse, False)


def fine_cells(options: ExplainOptions, within: Box = (0.0, 0.0, 1.0, 1.0)) -> tuple[CellLoss, ...]:
    """The cells of the fine map whose centres lie in a box, row by row."""
    return tuple(cell for cell in _cells(options, options.grid, True) if contains(within, cell.box))


def _cells(options: ExplainOptions, per_side: int, is_fine: bool) -> tuple[CellLoss, ...]:
    """Each cell; removed with it is the larger of it and `side` fine cells around its centre,
    within the picture."""
    half = max(options.side / options.grid, 1 / per_side) / 2
    found = []
    for row, column in product(range(per_side), repeat=2):
        x, y = (column + 0.5) / per_side, (row + 0.5) / per_side
        box = (column / per_side, row / per_side, (column + 1) / per_side, (row + 1) / per_side)
        left, top = max(x - half, 0.0), max(y - half, 0.0)
        removed = (left, top, min(x + half, 1.0), min(y + half, 1.0))
        found.append(CellLoss(box, removed, 0.0, is_fine))
    return tuple(found)


def cost_of(
    options: ExplainOptions, pictures: int, raw: bool, batched: bool, model: str = ""
) -> Cost:
    """The cost for a sample with so many pictures; `raw`: they are drawn from raw events."""
    first, fine = len(coarse_cells(options)), options.grid**2
    if first:
        fine = min(options.refined, first) * (options.grid // options.coarse) ** 2
    moments = pictures * (2 if raw else 1) if options.time and pictures > 1 else 0
    groups = (1, first, fine, moments)  # computed one after another
    encodings = sum(groups)
    passes = sum(math.ceil(size / options.batch) for size in groups) if batched else encodings
    each = measured_ms.get(model)
    return Cost(encodings, passes, None if each is None else encodings * each / 1000)


@dataclass(frozen=True)
class ExplainRequest:
    """Which words of which answer are explained.  `token_ids`: the answer's ids with the end token;
    () asks the model first."""

    run: RunRequest
    words: str
    token_ids: tuple[int, ...] = ()
    options: ExplainOptions = ExplainOptions()

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", check_question(self.words, MAX_WORDS, TO_EXPLAIN))


class Explanation(ExplainedWords, frozen=True, kw_only=True, eq=False):
    """The explanation that answers a request.  `pictures`: those of the plain input, event pictures
    on one canvas; a run does not keep them."""

    request: ExplainRequest
    pictures: tuple[Image, ...] = ()

    @property
    def shown_cells(self) -> tuple[CellLoss, ...]:
        """Cells that cover the picture once: the fine ones, and coarse ones without fine ones."""
        fine = [cell for cell in self.cells if cell.fine]
        return tuple(
            cell
            for cell in sorted(self.cells, key=lambda cell: cell.fine)
            if cell.fine or not any(contains(cell.box, one.box) for one in fine)
        )

    @property
    def strongest(self) -> tuple[CellLoss, ...]:
        """The same cells, the one that carries most, together with its neighbours, first."""
        cells = self.shown_cells
        value = smoothed({cell.box: cell.nats for cell in cells}, self.request.options.grid)
        return tuple(sorted(cells, key=lambda cell: -value[cell.box]))

    @property
    def most(self) -> float:
        """The largest size of a loss, which has the strongest colour; 0 without cells."""
        return max((abs(cell.nats) for cell in self.shown_cells), default=0.0)


def contains(outer: Box, inner: Box) -> bool:
    """Whether the centre of one box lies in the other."""
    x, y = (inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2
    return outer[0] <= x < outer[2] and outer[1] <= y < outer[3]


def smoothed(losses: Mapping[Box, float], grid: int) -> dict[Box, float]:
    """The weighted mean of each cell's loss with its eight neighbours; cells cover the picture
    once, in a raster of `grid` x `grid` places.

    A thing lowers the words in all boxes that cover it, and the largest loss may belong to a box
    beside it: the mean finds their middle (measured: docs/attribution.md).  A cell that covers
    several places has the largest of their values.
    """
    raster = {at: loss for box, loss in losses.items() for at in places(box, grid)}

    def value(at: tuple[int, int]) -> float:
        near = (w * raster.get((at[0] + y, at[1] + x), 0.0) for (y, x), w in WEIGHT.items())
        return sum(near) / sum(WEIGHT.values())

    return {box: max(map(value, places(box, grid))) for box in losses}


def places(box: Box, grid: int) -> list[tuple[int, int]]:
    """Row and column of the raster's places whose centres lie in the box."""
    left, top, right, bottom = box
    columns = [column for column in range(grid) if left <= (column + 0.5) / grid < right]
    rows = [row for row in range(grid) if top <= (row + 0.5) / grid < bottom]
    return [(row, column) for row in rows for column in columns]


def place(box: Box) -> str:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    across = ("left", "middle", "right")[min(int(3 * x), 2)]
    down = ("top", "middle height", "bottom")[min(int(3 * y), 2)]
    return f"{across}, {down}"


def nats_text(nats: float) -> str:
    """A loss with its sign: "+4.81 nats", "-0.02 nats", "0.00 nats"."""
    text = f"{nats:+.2f} nats"
    return "0.00 nats" if text[1:] == "0.00 nats" else text


class ExplainWatcher(Watcher):
    def planned(self, cost: Cost) -> None:
        """The cost is known; the changed inputs come next."""

    def done(self, encodings: int, of: int) -> None:
        """So many inputs of so many have been encoded and scored."""


def as_json(found: Explanation) -> dict[str, Any]:
    """The result without pictures, as plain JSON values."""
    request = found.request
    return {
        "sample": request.run.sample.id,
        "model": request.run.model,
        "prompt": request.run.prompt,
        "options": asdict(request.options),
        **{name: msgspec.to_builtins(getattr(found, name)) for name in KEPT},
    }


def of_run(folder: Path) -> tuple[StoredExplanation, ...]:
    """A run's explanations, oldest first; none if unreadable, which the run's problems report."""
    try:
        return explanations.read(folder)
    except StoreError:
        return ()


def keep(folder: Path, found: Explanation, repeat: int) -> None:
    """Appends the explanation to the run; StoreError if it cannot be saved."""
    explanations.put(folder, as_json(found) | {"repeat": repeat})


def refuse_other(now: tuple[int, ...], before: tuple[int, ...] | None, run: RunRequest) -> None:
    """BadInput if the model's answer now is not that of the run."""
    if now != before:
        raise BadInput(OTHER_ANSWER.format(cut(run.model), quoted(run.sample.id)))


def restored(stored: StoredExplanation, run: RunRequest) -> Explanation:
    """The explanation of this request, without pictures; StoreError for impossible options."""
    try:
        options = msgspec.convert(stored.options, ExplainOptions)
        request = ExplainRequest(run, stored.words, (), options)
        if not all(places(cell.box, options.grid) for cell in stored.cells):
            raise BadInput("its cells are not those of its options")
    except (BadInput, msgspec.MsgspecError) as error:
        raise StoreError(
            f"An explanation of the run cannot be used ({cut(str(error).rstrip('.'))}): explain "
            "the words again."
        ) from error
    return Explanation(request=request, **{name: getattr(stored, name) for name in KEPT})
