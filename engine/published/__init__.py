"""Other people's result files: read into one form, audited, and compared with published claims."""
