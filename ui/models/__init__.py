"""The parts of the Models page: cards, their actions, memory, and the feature cache."""
