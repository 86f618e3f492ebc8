"""The parts of the Benchmark page.

run_choice          the sidebar: from widgets to a plan, and where it runs
planning_view       what the planned run would cost; the command that starts it
run_progress_view   the progress of the shown run, its workers on a cluster
unfinished_runs     resuming a run
"""
