"""The attributes of demo scenes and their values.

Boundary: names only, so that code which reads answers does not depend on code which draws scenes.
"""

from collections.abc import Mapping

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "curve": ("left", "straight", "right"),
    "lead vehicle": ("none", "car", "truck"),
    "motion": ("approaching", "steady", "pulling away"),
    "roadside": ("trees", "buildings", "guardrail", "open field"),
    "guardrail side": ("left", "right"),
    "pedestrian": ("none", "left", "right"),
    "time of day": ("day", "night"),
}


def asked_content(truth: Mapping[str, str], task: str) -> dict[str, str]:
    """The content that a question asks for: the attribute that is its task, else everything."""
    return {name: value for name, value in truth.items() if task not in ATTRIBUTES or name == task}


def is_scene(truth: object) -> bool:
    """Whether this is the ground truth of a demo scene."""
    return isinstance(truth, dict) and bool(truth) and set(truth) <= set(ATTRIBUTES)
