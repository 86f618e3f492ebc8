"""The Results page's parts.

    sources.py   what can be opened: a Source gives rows; today a run of our own
    chosen.py    the sidebar: the list of sources, filters, and which of them are chosen
    opened.py    tables of the chosen sources and what was computed from them, read once
    overview.py  counts, stage bars, distributions, figures, failures
    comparing.py two labels: paired differences, what a speed-up is made of, a scatter of samples
    numbers.py   the figures of one answer, of its own or of its batch
    samples.py   the list of samples: filters, order, a page at a time
    sample.py    one sample: media, answers, word difference, token timeline, notes and thumbs
    origin.py    what ran with what, and the reports to download
    charts.py    distributions, scatter and timeline
    blocks.py    parts of a report on the page

Boundary: shows what the engine computes; computes no figure of its own.
"""
