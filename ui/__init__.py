"""The parts of the pages: a folder per page, and `widgets` that several pages use.  Boundary:
streamlit and altair are imported here and in pages/ only; torch and transformers never are.  Data
about runs comes from the engine's frozen types; no figure is computed here."""
