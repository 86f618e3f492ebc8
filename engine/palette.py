"""The colours of stages and families, one set for pages and reports.

Boundary: constants.  The stage colours keep 3:1 against the light and the dark ground and stay
apart for the three kinds of colour blindness; the model colours always stand beside a name.
"""

from __future__ import annotations

from collections.abc import Mapping

UNACCOUNTED = "unaccounted"
STAGE_COLOURS: Mapping[str, str] = {
    "load": "#3D93D8",
    "preprocess": "#C9820A",
    "vision": "#11805A",
    "decode": "#C2568F",
    UNACCOUNTED: "#868D97",
}
DECODE_COLOURS: Mapping[str, str] = {  # shades of decode's colour, for its parts
    "decode.prefill": "#A8447A",
    "decode.steps": "#CC72A2",
    "decode.rest": STAGE_COLOURS["decode"],
}
FAMILY_COLOURS: Mapping[str, str] = {
    "eventgpt": "#8768D8",
    "video_llava": "#1F8A9C",
    "llava": "#B5652B",
}
OTHER_FAMILY = "#868D97"
# Close to the red and blue of event pictures, readable on both grounds.
EVENT_COLOURS: Mapping[str, str] = {"brighter": "#D6453D", "darker": "#3D6FD8"}


def family_colour(family: str) -> str:
    return FAMILY_COLOURS.get(family, OTHER_FAMILY)
