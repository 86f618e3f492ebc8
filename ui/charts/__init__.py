"""Charts of the pages, beside those in engine/report/charts.py.

    run_bars           stage times of single runs as bars in HTML, also while they run; a table
    published_charts   charts of recorded files
    verify_charts      charts of a verification

No streamlit: figures in; Altair charts, HTML and text out.
"""
