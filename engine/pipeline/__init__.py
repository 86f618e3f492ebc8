"""The four stages in order: one run, several at once, the feature cache, prefixes, drafting.

Boundary: takes a loaded adapter; queues nothing and stores no results.
"""
