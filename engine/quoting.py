"""Values as text: quoted in messages, numbers with units, plurals, lists of words.  Imports nothing
of the project, so that every module may use it."""

import reprlib
from collections.abc import Iterable

MAX_CHARS = 80
MAX_NAMES = 20
MAX_LINE = 200  # of an exception
NONE = "–"  # for a missing number
_DECIMALS = ((100, 0), (10, 1), (1, 2))  # from this size on, so many decimals
Ends = tuple[float, float] | None  # of an interval
_MAX_BITS = 256  # of a whole number that is written out; Python refuses to print very long ones


class _Short(reprlib.Repr):
    """repr() that stops early in long and deep values."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = MAX_CHARS
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 8

    def repr_str(self, x: str, level: int) -> str:
        return repr(x[: MAX_CHARS + 1])

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() <= _MAX_BITS else "a very long number"


def quoted(value: object) -> str:
    """repr(value) in at most 80 characters; for a huge integer the text "a very long number"."""
    return cut(_Short().repr(value))


def listed(names: Iterable[str]) -> str:
    """The first 20 names, and how many more there are."""
    every = [cut(name) for name in names]
    rest = f" and {len(every) - MAX_NAMES:,} more" if len(every) > MAX_NAMES else ""
    return ", ".join(every[:MAX_NAMES]) + rest


def joined(parts: Iterable[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def cut(text: str) -> str:
    """The text itself, or its first 77 characters and "..."."""
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 3] + "..."


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, to be used inside a sentence."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:MAX_LINE].rstrip(" :.")


def printable(text: str) -> str:
    """The text with control characters replaced, so that it cannot control a terminal or page."""
    if text.replace("\n", "").isprintable():  # much faster
        return text
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str) -> str:
    """A name from a file, as pages, charts and terminals can show it: control characters, line
    ends and non-characters are replaced."""
    return printable(text).replace("\n", "\N{REPLACEMENT CHARACTER}")


def shown(path: object, most: int = MAX_CHARS) -> str:
    """A path in at most `most` characters, without control characters; its end is kept."""
    text = one_line(str(path))
    return text if len(text) <= most else f"...{text[3 - most :]}"


def whole(value: float) -> str:
    """A number with separators in at most 80 characters; a huge one is "a very long number"."""
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return "a very long number"
    return cut(f"{value:,}")


def count(number: int, noun: str, several: str = "") -> str:
    """ "1 frame", "8 frames", "2,220 samples"; `several` is a plural that is not noun + s."""
    return f"{whole(number)} {noun if number == 1 else several or noun + 's'}"


def tokens_told(number: float | None) -> str:
    """ "9 tokens", or that a server does not tell their number."""
    if number is None or number != number:
        return "tokens not told"
    return count(int(number), "token")


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
    size = float(f"{abs(value):.3g}")  # 99.96 is 100, not 100.0
    digits = 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:,.{digits}f} ms".replace("-", "−")


def rate(value: float | None) -> str:
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


def duration(seconds: float) -> str:
    """ "42 s", "3 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def gib(size: int) -> str:
    """Bytes in the unit that fits: "13.2 GiB", "41.0 MiB", "8.2 KiB", "12 bytes"."""
    for unit, step in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= step:
            return f"{size / step:.1f} {unit}"
    return f"{size} bytes"
