"""The figures of a card as one row of HTML: the total first, then the others in a fixed order.

With several runs each figure is a median, with its range below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from engine.analysis.compared import ComparedModel
from engine.report.answer_part import FORMULAS, UNITS, AnswerFigure, figures, notes

SHORT = {"New tokens": "Tokens", "Prompt tokens": "Prompt"}  # the labels of a narrow card


def waiting() -> str:
    """The row before there are figures, so that the card keeps its height."""
    return _row([AnswerFigure(name) for name in FORMULAS])


def markup(model: ComparedModel) -> str:
    """The row, and below it what has to be known to read it: the number of runs, the cache."""
    below = (f'<p class="card-note">{escape(note)}</p>' for note in notes(model))
    return _row(figures(model)) + "".join(below)


def _row(shown: Sequence[AnswerFigure]) -> str:
    usual = max(figure.runs for figure in shown)
    cells = "".join(_cell(figure, usual) for figure in shown)
    return f'<dl class="card-figures">{cells}</dl>'


def _cell(figure: AnswerFigure, usual: int) -> str:
    """A focusable cell whose formula shows when it is pointed at or has the focus; its range may
    break after the dash, and names the number of runs if it is not the usual one."""
    help_text = escape(FORMULAS[figure.name], quote=True)
    unit = f" <small>({UNITS[figure.name]})</small>" if figure.name in UNITS else ""
    ends = ""
    if figure.ends is not None:
        low, high = (f"<span>{escape(end)}</span>" for end in figure.ends)
        fewer = f" <span>n = {figure.runs}</span>" if 1 < figure.runs < usual else ""
        ends = f'<dd class="card-range">{low}–<wbr>{high}{fewer}</dd>'
    return (
        f'<div tabindex="0" data-help="{help_text}" aria-description="{help_text}">'
        f"<dt>{escape(SHORT.get(figure.name, figure.name))}{unit}</dt>"
        f"<dd><b>{escape(figure.value)}</b></dd>{ends}</div>"
    )
