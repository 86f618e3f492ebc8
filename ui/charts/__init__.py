"""Charts of the pages.

    run_charts         stage times of single runs, as chart, table and text
    stage_bar_chart    median stage times per model
    result_charts      distributions, a scatter of samples, a timeline
    published_charts   charts of recorded files
    verify_charts      charts of a verification

Boundary: figures in, Altair charts and text out; no streamlit.  Every axis has at most 8 ticks:
Vega reads `tickCount` as a wish, and 5 never gives more than 8.
"""

import altair as alt

from engine.report.svg_charts import TICKS


@alt.theme.register("stagescope", enable=True)
def theme() -> alt.theme.ThemeConfig:
    """What all charts share; Streamlit adds the colours of the page."""
    return {"config": {"axisQuantitative": {"tickCount": TICKS}, "text": {"fontSize": 12}}}
