"""The Benchmark page's parts.

    choice.py    the sidebar: from widgets to a plan
    watch.py     the run a visitor looks at, as it stands
    crew.py      the workers of a run on a cluster, and where each sample ran
    kept.py      runs that are not finished, and the way to go on with them

Boundary: draws what engine.jobs.benchmark_job tells and starts its jobs; measures nothing.
"""
