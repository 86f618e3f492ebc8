"""Charts of the pages.

    run_bars           stage times of single runs as bars in HTML, also while they run
    run_table          stage times of single runs as a table, with their sources
    stage_bar_chart    median stage times per model
    result_charts      distributions, a scatter of samples, a timeline
    published_charts   charts of recorded files
    verify_charts      charts of a verification
    chart_theme        what all Altair charts share: at most 8 ticks on an axis

Boundary: figures in; Altair charts, HTML and text out; no streamlit.
"""
