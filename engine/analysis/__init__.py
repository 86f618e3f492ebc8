"""Figures of runs: from result rows to tables, and from tables to conclusions.

results_table.py                     all results as one table
metrics.py, model_summary.py         names, units and formulas; counts, medians, percentiles
throughput.py, machine_loads.py      what batches give; how busy the machine was
statistics.py, clustered_shares.py   spreads and intervals
one_sided_tests.py                   p-values against a limit, and planning
pairs.py, speedup.py                 two models sample by sample; the factors of a speed-up
gate.py, gate_values.py, gate_checks.py   whether a run is worse than an earlier one
earlier_run.py, run_planning.py      what a planned run takes and detects
compared.py, run_verdict.py          the runs of the Compare page, and which was fastest
equal_length.py                      the same results at equal lengths
answer_reading.py, choice_reading.py   what an answer states, and which option it names
agreement.py, choice_accuracy.py     answers against known content, and word by word
acceptance.py, acceptance_marks.py, drafting.py   answers as drafts
robustness.py                        accuracy by the strength of a change of the input
ranking.py, vote_counts.py           which samples to look at first; what visitors prefer
"""
