"""The four stages in order: one run, several at once, the feature cache, drafting."""
