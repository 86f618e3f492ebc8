"""The colours of stages and families, one set for pages and reports.  The stage colours keep 3:1
against the light and the dark ground and stay apart for the three kinds of colour blindness; the
model colours always stand beside a name."""

from collections.abc import Mapping, Sequence

UNACCOUNTED = "unaccounted"
NEUTRAL = "#868D97"  # totals, lines of equal values, families without a colour
LIMIT = "#C9820A"  # a margin, a bound or a claim
STAGE_COLOURS: Mapping[str, str] = {
    "load": "#3D93D8",
    "preprocess": "#C9820A",
    "vision": "#11805A",
    "decode": "#C2568F",
    UNACCOUNTED: NEUTRAL,
}
DECODE_COLOURS: Mapping[str, str] = {  # shades of decode's colour, for its parts
    "decode.prefill": "#A8447A",
    "decode.steps": "#CC72A2",
    "decode.rest": STAGE_COLOURS["decode"],
}
SERVER_COLOURS: Mapping[str, str] = {  # of what happens at a server
    "server": "#8F763D",
    "server.upload": "#A88B48",
    "server.first": "#766232",
    "server.rest": "#8F763D",
}
FAMILY_COLOURS: Mapping[str, str] = {
    "eventgpt": "#8768D8",
    "video_llava": "#1F8A9C",
    "llava": "#B5652B",
    "transformers": "#346EA8",
    "served": "#9421E2",
}
# For the second and later columns of one family on a page; they stay apart from the families too.
COLUMN_COLOURS: Mapping[str, str] = {
    "column-1": "#FF4D79",
    "column-2": "#B38D1B",
    "column-3": "#A3527C",
    "column-4": "#B83A3A",
    "column-5": "#268053",
}
TONES: Mapping[str, str] = {**FAMILY_COLOURS, **COLUMN_COLOURS}
# Of lines in the order of a legend: equal lines then show through each other.
DASHES = ((1, 0), (8, 4), (3, 3), (10, 3, 3, 3), (14, 5), (5, 5))
# Close to the red and blue of event pictures, readable on both grounds.
EVENT_COLOURS: Mapping[str, str] = {"brighter": "#D6453D", "darker": "#3D6FD8"}

# Of a heat map: places that carry words, and places whose removal makes the words likelier.
HEAT_COLOURS: Mapping[str, str] = {"carries": "#E0760B", "against": "#0F7F8C"}


def family_colour(tone: str) -> str:
    """The colour of a family, or of a column that tones() named; a colour is itself."""
    return TONES.get(tone, tone if tone.startswith("#") else NEUTRAL)


def tones(families: Sequence[str]) -> list[str]:
    """A name in TONES for each column: the first of a family has the family's colour, later ones
    have the next free colour."""
    free, seen, found = iter(COLUMN_COLOURS), set[str](), []
    for family in families:
        found.append(next(free, family) if family in seen else family)
        seen.add(family)
    return found


def toned(families: Mapping[str, str]) -> dict[str, str]:
    """The same for families by label."""
    return dict(zip(families, tones(list(families.values())), strict=True))
