"""The parts of the Results page.

    result_sources             what can be opened: own runs; published files
    run_list                   the sidebar: list of sources, filters, the choice
    opened_runs                tables of the chosen runs and cached figures
    overview                   counts, stage bars, distributions, figures, failures
    comparison_view            two models: paired differences, speed-up parts, scatter
    sample_list                the list of samples: filters, order, pages
    sample_view                one sample: pictures, answers, differences, timeline, notes
    answer_figures             the figures of one answer
    origin_view                settings and machine of the runs, agreement, reports to download

Boundary: shows what the engine computes; computes no figure.
"""
