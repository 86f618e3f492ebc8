"""Figures of runs: from rows to tables, and from tables to what can be said.

    frame.py        the results of runs as one table; labels of what may stand in one mean
    places.py       which device and backend a result comes from
    metrics.py      names, units and formulas
    summary.py      counts, medians, spreads, percentiles
    throughput.py   what batches give
    stats.py        spreads and intervals
    pairs.py        two models sample by sample
    speedup.py      what a ratio of total times is made of
    lens.py         the same results at equal lengths
    agreement.py    answers against what is known;  overlap.py  word by word
    ranking.py      samples worth a look first

Boundary: reads rows and tables, runs nothing and writes nothing.
"""
