"""Published claims beside the evidence in result files.

    headlines.py, claim_times.py   three published claims and each file's evidence for them
    absences.py, confounds.py, doubts.py   why a file gives no evidence, or why it is weak
    waterfall.py                   the parts of the difference of two mean totals
    denominators.py, unknowns.py, published_report.py   the report

Boundary: ResultFiles in, figures and sentences out.
"""
