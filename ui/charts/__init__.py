"""Charts that several pages use.

    run_charts   stage times of single runs, as chart, table and text
    stage_bars   median stage times per model

Boundary: figures in, Altair charts and text out; no streamlit.
"""
