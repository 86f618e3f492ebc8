"""The four stages in order: one run, several at once, the feature cache, prefixes, drafting.

Boundary: takes an adapter that is loaded; queues nothing and keeps no result.
"""
