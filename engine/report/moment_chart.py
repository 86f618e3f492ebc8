"""How much each frame or event image carries the words of an answer, as bars in the order of time.

Boundary: losses in, an Altair chart or its text out.  Reports and pages share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.attribution import wording
from engine.attribution.explained import nats_text
from engine.palette import HEAT_COLOURS
from engine.storage.explanations import MomentLoss

if TYPE_CHECKING:
    import altair as alt

_HEIGHT = 210  # with the axis and the legend
_COLOURS = {"replaced": HEAT_COLOURS["carries"], "emptied": "#868D97"}


def chart(moments: Sequence[MomentLoss], width: int | None = None) -> alt.Chart:
    """A bar per frame or event image; two if it was also emptied of its events."""
    import altair as alt
    import pandas as pd

    names = {name: wording.HOW[name] for name in _COLOURS if name in {m.how for m in moments}}
    rows = [
        {"label": one.label, "how": names[one.how], "nats": one.nats, "words": nats_text(one.nats)}
        for one in moments
    ]
    order = list(dict.fromkeys(one.label for one in moments))
    beside = alt.ExprRef("width < 420 ? 1 : 2")  # of the legend: two are cut off on a phone
    legend = alt.Legend(orient="bottom", title=None, columns=beside) if len(names) > 1 else None
    scale = alt.Scale(domain=list(names.values()), range=[_COLOURS[name] for name in names])
    size: dict[str, Any] = {"height": _HEIGHT} | ({"width": width} if width else {})
    drawn: alt.Chart = alt.Chart(pd.DataFrame(rows)).mark_bar()
    return drawn.encode(
        x=alt.X("label:N", sort=order, title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        xOffset=alt.XOffset("how:N", sort=list(names.values())),
        y=alt.Y("nats:Q", title="nats"),
        color=alt.Color("how:N", scale=scale, legend=legend),
        tooltip=[
            alt.Tooltip("label:N", title="Part"),
            alt.Tooltip("how:N", title="Removal"),
            alt.Tooltip("words:N", title="Loss"),
        ],
    ).properties(**size)


def words(moments: Sequence[MomentLoss]) -> str:
    """The chart as text, for readers who do not see it."""
    parts = "; ".join(map(wording.moment, moments))
    return f"Loss of the words' log-probability by frame or event image: {parts}."
