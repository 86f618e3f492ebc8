"""The commands of `python -m engine`.  `add` adds the parsers of a module's commands.  Boundary:
parses arguments and prints; computes nothing.  Importing a command imports neither torch nor
pandas."""
