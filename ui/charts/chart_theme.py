"""What all Altair charts share; Streamlit adds the colours of the page.

Boundary: importing it registers the theme.  Every axis has at most 8 ticks: Vega reads `tickCount`
as a wish, and 5 never gives more than 8.
"""

from __future__ import annotations

import altair as alt

from engine.report.svg_charts import TICKS


@alt.theme.register("stagescope", enable=True)
def theme() -> alt.theme.ThemeConfig:
    return {"config": {"axisQuantitative": {"tickCount": TICKS}, "text": {"fontSize": 12}}}
