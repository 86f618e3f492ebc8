"""The Results page's part for published result files: sets of files that were recorded elsewhere.

    sources.py   what can be opened: kept sets, and the files of this visit
    visit.py     the files that were dropped or read from a folder, for this visit alone
    adding.py    where files are dropped, a folder is given, a set is kept or removed
    opened.py    files read and audited once, and what was computed from them
    view.py      the head, the switch between recorded and corrected, the views
    files.py     file by file: group, records, errors, status
    findings.py  what the rules found, and the records concerned
    records.py   records as a table
    figures.py   one file: who answered, stages and tokens, bars, waterfall
    drafts.py    one file: would one model's answers do as drafts for the other's?
    painted.py   a draft's text with its accepted and rejected tokens
    claims.py    the three published claims beside what the files say
    beside.py    own runs and recorded files in one chart and one table
    own.py       own runs under the same rules, and their models' answers as drafts
    reports.py   the report to download
    charts.py    waterfall, acceptance, claims

Boundary: shows what the engine reads and computes; computes no figure of its own.  Every word of a
file goes through st.text, html.escape or a grid of plain text.
"""
