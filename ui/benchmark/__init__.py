"""The parts of the Benchmark page.

run_choice          the sidebar: from widgets to a plan, and where it runs
planning_view       what the planned run would cost and detect
start_command       the command that starts it from a terminal
run_progress_view   the progress of the shown run, and its workers on a cluster
unfinished_runs     unfinished runs and buttons to resume them
"""
