"""The figures of a card as one row of HTML: the total first, then the others in a fixed order.

With several runs each figure is a median, with its range below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from engine.analysis.compared import ComparedModel, RunRange
from engine.quoting import NONE
from ui.widgets.text import count, ms, rate

FORMULAS = {
    "Total": "From the start of the run to its end. Queue time is not included.",
    "TTFT": "Time to first token: from the start of the run to the first new token. "
    "Queue time is not included.",
    "TPOT": "Time per output token: (end of the run − TTFT) / (N − 1), for N new tokens.",
    "tok/s": "(N − 1) / seconds after the first token, for N new tokens.",
    "New tokens": "Tokens the model produced, with the end-of-answer token, without the prompt.",
    "Prompt tokens": "Tokens of the prompt, including the visual tokens.",
}
UNITS = {"Total": "ms", "TTFT": "ms", "TPOT": "ms"}  # the others have none, or are named by it
SHORT = {"New tokens": "Tokens", "Prompt tokens": "Prompt"}  # the labels of a narrow card
UNKNOWN = "unknown"


@dataclass(frozen=True)
class CardFigure:
    """A name of FORMULAS, a number in the unit of UNITS, and the range of several runs."""

    name: str
    value: str = NONE
    ends: tuple[str, str] | None = None
    runs: int = 0


def figures(model: ComparedModel) -> tuple[CardFigure, ...]:
    """The figures of the model's runs, in the order of FORMULAS."""
    steps = model.time("tpot")
    context = [result.generation.prompt_tokens for result in model.counted]
    return (
        _figure("Total", model.time("total"), _ms),
        _figure("TTFT", model.time("ttft"), _ms),
        _figure("TPOT", steps, _ms),
        _figure("tok/s", _speed(steps), _rate),
        _figure("New tokens", _counted([result.new_tokens for result in model.counted]), _whole),
        _figure("Prompt tokens", _counted(context), _whole),
    )


def _figure(name: str, spread: RunRange | None, text: Callable[[float], str]) -> CardFigure:
    if spread is None:
        return CardFigure(name)
    ends = (text(spread.low), text(spread.high)) if spread.runs > 1 else None
    return CardFigure(name, text(spread.median), ends, spread.runs)


def _speed(steps: RunRange | None) -> RunRange | None:
    """Tokens per second from the time per token."""
    if steps is None or not steps.low:
        return None
    return RunRange(1000 / steps.median, 1000 / steps.high, 1000 / steps.low, steps.runs)


def _counted(values: Sequence[int]) -> RunRange:
    """The spread of a number of tokens; a single value if all runs have the same."""
    runs = len(values) if min(values) < max(values) else 1
    return RunRange(median(values), min(values), max(values), runs)


def _ms(value: float) -> str:
    return ms(value).removesuffix(" ms")


def _rate(value: float) -> str:
    return rate(value).removesuffix(" tok/s")


def _whole(value: float) -> str:
    return f"{value:,g}"


def waiting() -> str:
    """The row before there are figures, so that the card keeps its height."""
    return _row([CardFigure(name) for name in FORMULAS])


def markup(model: ComparedModel) -> str:
    """The row, and below it what has to be known to read it: the number of runs, the cache."""
    shown = figures(model)
    return _row(shown) + "".join(f'<p class="card-note">{escape(one)}</p>' for one in notes(model))


def notes(model: ComparedModel) -> list[str]:
    """The number of runs, those that do not count, and the total without cache."""
    runs = len(model.counted)
    found = [f"Median and range of {count(runs, 'run')}."] if runs > 1 else []
    found += [f"{count(out.runs, 'run')} left out: {out.reason}." for out in model.left_out]
    if model.last.cached:
        whole = model.time("uncached_total")
        found.append(f"Without cache: {ms(whole.median) if whole else UNKNOWN}.")
    return found


def _row(shown: Sequence[CardFigure]) -> str:
    usual = max(figure.runs for figure in shown)
    cells = "".join(_cell(figure, usual) for figure in shown)
    return f'<dl class="card-figures">{cells}</dl>'


def _cell(figure: CardFigure, usual: int) -> str:
    """A focusable cell whose formula shows when it is pointed at or has the focus."""
    help_text = escape(FORMULAS[figure.name], quote=True)
    unit = f" <small>({UNITS[figure.name]})</small>" if figure.name in UNITS else ""
    return (
        f'<div tabindex="0" data-help="{help_text}" aria-description="{help_text}">'
        f"<dt>{escape(SHORT.get(figure.name, figure.name))}{unit}</dt>"
        f"<dd><b>{escape(figure.value)}</b></dd>{_ends(figure, usual)}</div>"
    )


def _ends(figure: CardFigure, usual: int) -> str:
    """The range, which may break after its dash, and the number of runs if it is not the usual."""
    if figure.ends is None:
        return ""
    low, high = (f"<span>{escape(end)}</span>" for end in figure.ends)
    fewer = f" <span>n = {figure.runs}</span>" if 1 < figure.runs < usual else ""
    return f'<dd class="card-range">{low}–<wbr>{high}{fewer}</dd>'
