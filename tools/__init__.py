"""Programs for the people who work on the project.

Boundary: nothing that ships imports them.
"""
