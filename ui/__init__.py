"""What the pages draw with.

Boundary: streamlit and altair live here and in pages/; the models' libraries never do.  Everything
about a run comes from the engine's frozen types.
"""
