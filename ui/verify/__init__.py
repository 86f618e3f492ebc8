"""The parts of the Verify page.

    verify_choice       the sidebar
    verify_job_view     the verification that a visitor watches
    report_view         a running verification or a certificate, in one form for drawing
    verdict_board       summaries and tables of a report, updated while it grows
    proof_summary       what was proved and what was not, in sentences
    evidence            the evidence of each check
    verify_charts       distributions of times
    verdict_markup      outcome marks, small tables and tokens as HTML
    kept_certificates   earlier certificates

Boundary: draws the results of engine.verify; checks nothing itself.
"""
