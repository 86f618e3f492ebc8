"""The verdict above the stage bars: who was fastest, the totals of all models, and the reason."""

from __future__ import annotations

from html import escape

from engine.analysis.compared import RunRange
from engine.analysis.run_verdict import ModelFigures, RunVerdict
from engine.palette import family_colour
from ui.widgets.text import count, ms

STYLE = """
.st-key-compare_verdict { min-height: 9.5rem; }
.verdict { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.verdict h2 { font-size: var(--title); margin: 0; padding: 0 0 0.5rem; line-height: 1.3; }
.verdict-models { display: grid; gap: 0.4rem 1.5rem; margin-bottom: 0.5rem; max-width: 60rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 11rem), 1fr)); }
.verdict-model { border-left: 4px solid var(--model); padding-left: 0.6rem; line-height: 1.4; }
.verdict-model b { font-size: var(--title); font-weight: 600; display: block; }
.verdict-model span { font-size: var(--small); display: block; }
.verdict p { margin: 0 0 0.2rem; font-size: var(--text); line-height: 1.4; }
.verdict .verdict-note { font-size: var(--small); }
"""


def markup(found: RunVerdict) -> str:
    """A heading, the models with their figures, the reason or what is mixed, and the notes.  It is
    no live region."""
    models = "".join(_model(one) for one in found.models)
    lines = [line for line in (found.reason, *found.mixed) if line]
    sentences = "".join(f"<p>{escape(line)}</p>" for line in lines)
    notes = f'<p class="verdict-note">{escape(" ".join(found.notes))}</p>' if found.notes else ""
    return (
        f'<div class="verdict"><h2>{escape(found.headline)}</h2>'
        f'<div class="verdict-models" role="list">{models}</div>{sentences}{notes}</div>'
    )


def _model(one: ModelFigures) -> str:
    figures = [_tokens(one.tokens)]
    if one.per_token is not None:
        figures.append(f"{ms(one.per_token.median)} per token")
    words = " · ".join(figures)
    return (
        f'<div class="verdict-model" role="listitem" '
        f'style="--model: {family_colour(one.family)}">{escape(one.label)}'
        f"<b>{ms(one.total.median)}</b><span>{words}</span>{_range(one.total)}</div>"
    )


def _range(total: RunRange) -> str:
    if total.runs == 1:
        return ""
    return f"<span>median of {total.runs:,}: {ms(total.low)} to {ms(total.high)}</span>"


def _tokens(ends: tuple[int, int]) -> str:
    low, high = ends
    return count(high, "token") if low == high else f"{low:,} to {high:,} tokens"
