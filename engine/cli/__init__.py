"""The commands of `python -m engine`, one module each: `add` makes its parser, which names its run.

Boundary: parses arguments and prints; what is computed is computed elsewhere.  Importing a command
imports neither torch nor pandas.
"""
