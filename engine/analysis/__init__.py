"""Figures of runs: from result rows to tables, and from tables to conclusions."""
