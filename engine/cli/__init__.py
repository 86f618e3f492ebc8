"""The commands of `python -m engine`, one module each.  `add` adds a command's parser.  Boundary:
parses arguments and prints; computes nothing.  Importing a command imports neither torch nor
pandas."""
