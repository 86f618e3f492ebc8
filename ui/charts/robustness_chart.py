"""Shares by the strength of a perturbation: a line per model with its interval as a band.

Boundary: points in, an Altair chart out; no streamlit.  The chart's text is that of the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from engine.palette import DASHES
from ui.charts import chart_theme  # noqa: F401 - registers the theme
from ui.widgets.theme import family_colour

_HEIGHT, _LABEL = 400, 320
_SHARE = "share, with 95 % interval"
_COLUMNS = alt.ExprRef("width < 420 ? 1 : 3")  # of the legend


def chart(
    lines: Sequence[Mapping[str, Any]], axis: str, tones: Mapping[str, str]
) -> alt.LayerChart:
    """lines: model, strength, share, low, high (None without an interval).

    tones: the colour of each model, as in palette.tones, in the order of the legend.
    """
    names, table = list(tones), pd.DataFrame(list(lines))
    scale = alt.Scale(domain=names, range=[family_colour(tones[name]) for name in names])
    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=_COLUMNS,
        labelLimit=_LABEL,
        labelFontSize=12,
        symbolOpacity=1,
    )
    model: Any = alt.Color("model:N", scale=scale, legend=legend)
    shape = alt.Shape("model:N", scale=alt.Scale(domain=names), legend=legend)
    shares = alt.Scale(domain=[0, 1])
    dash = alt.StrokeDash("model:N", scale=alt.Scale(domain=names, range=[*DASHES]), legend=None)
    base: Any = alt.Chart(table).encode(x=alt.X("strength:Q", title=axis), color=model)
    y = alt.Y("share:Q", title=_SHARE, scale=shares)
    band = alt.Y("low:Q", title=_SHARE, scale=shares)
    tip = [
        alt.Tooltip("model:N", title="Model"),
        alt.Tooltip("strength:Q", title=axis, format=".6~g"),
        alt.Tooltip("share:Q", title="Share", format=".3f"),
        alt.Tooltip("low:Q", title="95 % interval from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
    ]
    layers = [
        base.mark_area(opacity=0.14).encode(y=band, y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dash),
        base.mark_point(filled=True, size=70, opacity=1).encode(y=y, shape=shape, tooltip=tip),
    ]
    return alt.LayerChart(layer=layers, height=_HEIGHT)
