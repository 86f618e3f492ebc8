"""The parts of the Results page.

    result_sources             the runs that can be opened
    run_list                   the field where runs are chosen; heads of the chosen runs
    opened_runs                tables of the chosen runs and cached figures
    overview                   counts, stage bars, distributions, figures, failures
    comparison_view            two models: paired differences, speed-up parts, scatter
    sample_list                the list of samples: filters, order, pages
    sample_view                one sample: pictures, answers, explanations, differences, timeline
    deck_view                  votes on two answers, one sample at a time
    gate_view                  whether the newer of two runs is worse
    document_views             accuracy, robustness, references, what ran, reports to download

Boundary: shows what the engine computes; computes no figure.
"""
