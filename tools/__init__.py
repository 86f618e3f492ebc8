"""Programs for developers of the project.

Boundary: the product does not import them.
"""
