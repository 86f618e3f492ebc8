"""The parts of the Benchmark page.

    run_choice          the sidebar: from widgets to a plan
    executor_choice     the sidebar: this process, or workers of a Ray cluster
    run_progress_view   the progress of the shown run
    worker_table        the workers of a run on a cluster, and where each sample ran
    unfinished_runs     unfinished runs and buttons to resume them

Boundary: starts the jobs of engine.jobs.benchmark_job and draws their views; measures nothing.
"""
