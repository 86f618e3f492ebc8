"""Other people's result files: read into one form, audited, and compared with published claims.

Boundary: data alone.  No torch; nothing here runs a model.
"""
