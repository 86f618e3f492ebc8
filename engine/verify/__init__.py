"""Verification: is decoupled inference the model's own inference, here and now?

Five ways lead to an answer: *plain* (the model's own generate() on pixels), *hooked* (the same
under the vision probe), *decoupled* (features encoded once, put on disk, read back, decoded by the
project's loop), *features* (generate() given the features) and *reused* (the same loop, going on
from a prefix that another question left in memory).  plain is the judge; nothing that judges
another way is taken from that way.

    verdict.py   what a check found, in words and figures
    ways.py      the ways, with the logits and the calls of the vision tower seen from outside
    equality.py  equal tokens, a tie within rounding, or a mismatch
    stages.py    clock, stage sums, stage 3 twice
    moments.py   a run and its tokens on two clocks
    observer.py  what the probe costs
    loaded.py    timing checks on a busy machine
    keys.py      the feature cache: its keys and a damaged entry
    traces.py    the model is left as it was found
    sight.py     what is shown changes what is said
    checks.py    the findings that need no more than the recordings
    run.py       all checks of all models and samples

Boundary: importing this package imports no torch; `run` does.
"""
