"""The Verify page's parts.

    report.py    a running verification or a kept certificate, as one thing to draw
    summary.py   what was proved and what was not, in sentences
    markup.py    small tables, marks and tokens as HTML, every word escaped
    charts.py    distributions of times
    evidence.py  what a check saw, check by check
    board.py     summaries and tables of a report on the page, kept up to date while it grows
    choice.py    the sidebar
    job.py       the verification a visitor looks at
    kept.py      earlier certificates

Boundary: draws what engine.verify found; finds nothing itself.
"""
