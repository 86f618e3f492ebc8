"""Charts of the pages.

    run_charts         stage times of single runs, as chart, table and text
    stage_bar_chart    median stage times per model
    result_charts      distributions, a scatter of samples, a timeline
    published_charts   charts of recorded files
    verify_charts      charts of a verification

Boundary: figures in, Altair charts and text out; no streamlit.
"""
