"""Event files: one reader module per format, which the kind of the file names (kinds.py).

A reader module has `opened(path, name)`, a context manager that gives a Recording.  It reports
everything that is wrong with a file as MediaError with the name, or as Damaged, and never runs code
from it.  Its columns are plain numbers as they are in the file, and times in microseconds;
event_columns.py checks the values.
"""
