"""Published result files beside what is claimed of them; reading them is engine/records', finding
wrong numbers engine/audit's.

    headlines.py      three published claims and the files' evidence
    reaches.py  absences.py  confounds.py  doubts.py   what a file can say of a claim, and cannot
    waterfall.py      what a difference of two means is made of
    token_pairs.py  denominators.py  acceptance.py  shuffling.py   token ids of two models
    report.py  forms.py  unknowns.py                   a document of it all

Boundary: ResultFiles in, figures and sentences out.
"""
