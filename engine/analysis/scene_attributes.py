"""What can be said about a demo scene: its attributes and their values.

The boundary: names only, so that whoever reads answers need not know how scenes are drawn.
"""

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "curve": ("left", "straight", "right"),
    "lead vehicle": ("none", "car", "truck"),
    "motion": ("approaching", "steady", "pulling away"),
    "roadside": ("trees", "buildings", "guardrail", "open field"),
    "guardrail side": ("left", "right"),
    "pedestrian": ("none", "left", "right"),
    "time of day": ("day", "night"),
}
