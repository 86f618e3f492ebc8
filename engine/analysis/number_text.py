"""Numbers as text for findings, reports, the terminal and the pages.

Boundary: numbers in, text out.
"""

from __future__ import annotations

from engine.types import Tower

NONE = "–"  # for a missing number
_DECIMALS = ((100, 0), (10, 1), (1, 2))  # from this size on, so many decimals
Ends = tuple[float, float] | None  # of an interval


def number(value: float | None) -> str:
    """Three significant digits with thousands separators: "0.123", "12.3", "1,234"."""
    if value is None or value != value:
        return NONE
    if value == 0:
        return "0"
    places = next((places for least, places in _DECIMALS if abs(value) >= least), 3)
    return f"{value:,.{places}f}"


def precise(value: float | None) -> str:
    """Four significant digits, more where the whole part has more: "0.1234", "12,345"."""
    if value is None:
        return NONE
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def precise_ms(value: float | None) -> str:
    return NONE if value is None else f"{precise(value)} ms"


def ms(value: float | None) -> str:
    """Milliseconds with three digits: 0.42, 8.15, 48.2, 1,204."""
    if value is None:
        return NONE
    size = abs(value)
    digits = 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:,.{digits}f} ms"


def rate(value: float | None) -> str:
    """Tokens per second."""
    if value is None:
        return NONE
    return f"{value:,.1f} tok/s" if value < 100 else f"{value:,.0f} tok/s"


def times(value: float | None, interval: Ends = None) -> str:
    """A ratio: "1.23x", "1.23x (1.10 to 1.40)"."""
    if value is None:
        return NONE
    return f"{value:.2f}x" + (f" ({interval[0]:.2f} to {interval[1]:.2f})" if interval else "")


def percent(value: float | None, interval: Ends = None) -> str:
    """A share: "12.3%", "12.3% (10.0% to 14.0%)"."""
    if value is None:
        return NONE
    return f"{value:.1%}" + (f" ({interval[0]:.1%} to {interval[1]:.1%})" if interval else "")


def count(number: int, noun: str, several: str = "") -> str:
    """ "1 frame", "8 frames", "2,220 samples"; `several` is a plural that is not noun + s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {several or noun + 's'}"


def duration(seconds: float) -> str:
    """ "42 s", "3 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def size(count: int) -> str:
    """Bytes in the largest fitting unit: "1.5 MiB"."""
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= step:
            return f"{count / step:.1f} {unit}"
    return f"{count} B"


def tower_text(tower: Tower | None) -> str:
    """The known sizes of a vision tower: "24 layers of 1,024, 16 heads, 336 px in patches of 14
    px"; "" if there are none."""
    if tower is None:
        return ""
    depth = "" if tower.layers is None else count(tower.layers, "layer")
    width = "" if tower.hidden is None else f"{tower.hidden:,}"
    heads = "" if tower.heads is None else count(tower.heads, "head")
    side = "" if tower.image_size is None else f"{tower.image_size} px"
    patch = "" if tower.patch_size is None else f"patches of {tower.patch_size} px"
    body = " of ".join(filter(None, [depth or ("layers" if width else ""), width]))
    return ", ".join(filter(None, [body, heads, " in ".join(filter(None, [side, patch]))]))
