"""Figures of runs: from result rows to tables, and from tables to conclusions.

results_table.py                     all results as one table, and at equal lengths
metrics.py, model_summary.py         names, units and formulas; counts, medians, throughput
machine_loads.py                     on which devices, and how busy the machine was
statistics.py                        spreads, intervals, p-values against a limit
pairs.py, speedup.py                 two models sample by sample; the factors of a speed-up
gate.py                              whether a run is worse than an earlier one
run_planning.py                      what a planned run takes
compared.py                          the runs of the Compare page, and which was fastest
answer_reading.py                    what an answer states, and which option it names
agreement.py, choice_accuracy.py     answers against known content and each other
acceptance.py, drafting.py           answers as drafts
robustness.py                        accuracy by the strength of a change of the input
"""
