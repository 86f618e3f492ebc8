"""The part of the Results page for published result files.

    adding.py             drop files, read a folder, keep or remove a set
    opened_sets.py        files read and audited once, and what was computed from them
    sets_view.py          the head, the switch between recorded and corrected, the views
    file_list.py          the files: group, records, errors, status
    audit_view.py         findings and the records concerned;  record_table.py: records as a table
    file_figures.py       one file: who answered, stages and tokens, bars, waterfall
    draft_view.py         one file: one model's answers as drafts for the other's
    claim_view.py         the three published claims beside the files' evidence
    beside_own_runs.py    own runs and recorded files in one chart and one table
    own_drafts.py         one model's answers in own runs as drafts for another
    report_download.py    the report to download
    published_charts.py   waterfall, acceptance, claims

Boundary: shows what the engine computes.  Every text of a file goes through st.text, html.escape or
a grid of plain text.
"""
