"""Figures of runs: from result rows to tables, and from tables to conclusions.

    results_table.py, result_device.py   all results as one table; the device and backend of each
    metrics.py, model_summary.py         names, units and formulas; counts, medians, percentiles
    throughput.py, machine_loads.py      what batches give; how busy the machine was
    statistics.py, jackknife.py          spreads and intervals
    pairs.py, speedup.py                 two models sample by sample; the factors of a speed-up
    gate.py, gate_values.py, gate_checks.py   whether a run is worse than an earlier one
    one_sided_tests.py, share_tests.py   p-values against a limit, and planning
    equal_length.py                      the same results at equal lengths
    agreement.py, word_overlap.py        answers against known content, and word by word
    acceptance.py, chance_baseline.py, token_pairs.py, acceptance_marks.py   answers as drafts
    ranking.py                           which samples to look at first
    stage_bars.py, quoting.py        what bars are made of; how numbers are written

Boundary: reads rows and tables; runs nothing and writes nothing.
"""
