"""Verification: does decoupled inference give the same answers and times as the model itself?

An answer is computed in five ways: *plain* (the model's own generate() on pixels), *hooked* (the
same under the vision probe), *decoupled* (features are encoded once, written to disk, read back and
decoded by the project's loop), *features* (generate() on the features) and *reused* (the project's
loop, continuing from a prefix that another question left in memory).  plain is the reference.

    verdict.py             the result of a check: outcome, sentence, figures
    answer_paths.py        the five ways, with logits and vision calls recorded by hooks
    equality.py            equal tokens, a tie within rounding, or a mismatch
    checks.py              checks that only need the recorded answers
    model_checks.py        checks that are done once per model
    extents.py             natural end, long answers, batches
    sampling.py            temperature, top_p, seed and minimum length, on flattened logits
    projection.py          visual rows recomputed in float64; what the probe times
    named_processor.py     pixels recomputed by the named image processor
    frame_choice.py        frames read a second time
    input_effect.py        whether the input changes logits and answer
    stage_work.py          each stage does its own work; the clock waits for the device
    stage_times.py         clock, stage sums, stage 3 measured twice
    clock_agreement.py     a run and its tokens on two clocks
    recomputed.py          TTFT, TPOT, totals and token times from the raw spans
    observer.py            the cost of the probe
    busy_checks.py         timing checks on a busy machine
    cache_checks.py        cache keys and a damaged cache entry
    cleanup.py             the model is unchanged afterwards
    controls.py            the comparison finds planted differences
    limits.py              what is not proved
    runner.py              runs all checks of all models and samples
    certificates.py        writes, reads and finds certificates
    certificate_status.py  whether a certificate is still valid

    Boundary: importing this package does not import torch; importing `runner` does.
"""
