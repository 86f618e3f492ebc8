"""Published claims beside the evidence in result files, and the report."""
