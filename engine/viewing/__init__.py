"""A sample for people to look at; nothing here decides what a model receives."""
