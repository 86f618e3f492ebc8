"""Events as text: columns in any order, units, windows by bytes; faery and eventcv beside."""

from pathlib import Path

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import event_columns, events
from engine.media.readers import text
from engine.media_options import Window
from engine.types import Events
from tests.media.readers.streams import Table, binned, refusal, same, table, windows_agree


def saved(path: Path, values: Table, header: str = "t,x,y,p", separator: str = ",") -> Path:
    names = [name[0] for name in header.lower().split(separator)]
    rows = zip(*(values[name].tolist() for name in names), strict=True)
    lines = [separator.join(map(str, row)) for row in rows]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    "head",
    [
        "# made by hand\n% twice\n\nt,x,y,p\n",
        "# t,x,y,p\n",
        "% t x y p\n",
        "\N{ZERO WIDTH NO-BREAK SPACE}t,x,y,p\n",
        '"t","x","y","p"\n',
        "Time [us], X, Y, Polarity\n",
        "t(us),xs,ys,pol\n",
        "# units below\n# ts_us,x,y,on\n",
    ],
)
def test_forms_of_the_line_of_names(tmp_path: Path, head: str) -> None:
    true = table(50)
    path = saved(tmp_path / "a.csv", true)
    path.write_text(head + path.read_text().split("\n", 1)[1].replace(",", ", "), "utf-8")
    assert same(events.read(path), true)


@pytest.mark.parametrize(("unit", "factor"), [("s", 1e-6), ("ms", 1e-3), ("us", 1), ("ns", 1000)])
def test_units(tmp_path: Path, unit: str, factor: float) -> None:
    true = table(3000, begin=1_600_000_000_000_000 if unit == "s" else 0)
    rows = zip(*(true[key].tolist() for key in "txyp"), strict=True)
    digits = {"s": 6, "ms": 3}.get(unit, 0)
    lines = [f"{t * factor:.{digits}f},{x},{y},{p}" for t, x, y, p in rows]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([f"t_{unit},x,y,p", *lines]))
    assert windows_agree(path, true, 10) > 3
    assert not any("no unit" in note for note in events.read(path).warnings)


def test_microseconds_without_a_unit_are_noted(tmp_path: Path) -> None:
    (note,) = events.read(saved(tmp_path / "a.csv", table(50, span_us=900))).warnings
    assert note.endswith("a.csv have no unit and are taken as microseconds.")


BAD = {
    "no line of names": ("0,1,2,1\n5,1,2,0\n", "write a first line such as t,x,y,p"),
    "a size instead of names": ("240 180\n0 1 2 1\n", "does not name its columns"),
    "a column is missing": ("t,x,y\n0,1,2\n", "does not name its columns p"),
    "only names": ("t,x,y,p\n", "holds 0 events"),
    "only comments": ("# t,x,y,p\n", "holds 0 events"),
    "seconds without a unit": ("t,x,y,p\n0.001,1,2,1\n0.002,1,2,1\n", "name the column t_s"),
    "words": ("t,x,y,p\n0,1,2,1\nfoo,1,2,1\n", "1 line without an event, such as 'foo,1,2,1'"),
    "a short line": ("t,x,y,p\n0,1,2,1\n5,1\n7,1,2,1\n", "such as '5,1': .* its 4 columns"),
    "a long line": ("t,x,y,p\n0,1,2,1\n5,1,2,1,1\n", "such as '5,1,2,1,1"),
    "an empty value": ("t,x,y,p\n0,1,2,1\n5,,2,1\n", "such as '5,,2,1'"),
    "outside the sensor": ("t,x@64,y@48,on\n0,64,2,1\n5,1,2,1\n", "width 64"),
    "an endless line": ("t,x,y,p\n" + "1," * 100_000, "such as '1,1,1,1,1'"),
    "an endless file": ("t,x,y,p\n" + "1," * 3_000_000, "a line of more than 4,096 bytes"),
    "a huge time": ("t,x,y,p\n0,1,2,1\n" + "9" * 25 + ",1,2,1\n", "such as '9{25},1.* 19 digits"),
    "not a time": ("t_s,x,y,p\ninf,1,2,1\n2,1,2,1\n", "such as 'inf,1,2,1'"),
}


@pytest.mark.parametrize(("content", "why"), BAD.values(), ids=BAD)
def test_files_that_are_refused(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    for window in (None, Window(0, 1_000_000)):
        with pytest.raises(MediaError, match=why):
            events.read(path, window)
        refusal(path, window)


def test_a_line_that_is_cut_off(tmp_path: Path) -> None:
    true = table(500)
    path = saved(tmp_path / "a.csv", true)
    path.write_bytes(path.read_bytes()[:-3])
    found = events.read(path)
    assert same(found, {key: values[:-1] for key, values in true.items()})
    assert any(
        "Left out of" in note and ": 1 line without an ev" in note for note in found.warnings
    )


@pytest.mark.parametrize("line", ["foo", "5", "# a comment", "t,x,y,p", "1,2,3,1,9", "1,,3,1"])
@pytest.mark.parametrize("few", [False, True])  # such files are parsed again for a window
def test_lines_without_an_event_are_noted(
    tmp_path: Path, line: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "KEPT", 3000 if few else 1 << 24)
    monkeypatch.setattr(text, "PIECE", 7000)
    true = table(4000)
    path = saved(tmp_path / "a.csv", true)
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:1500], line, *lines[1500:3000], line, *lines[3000:]]))
    for window in (Window(0, 500_000), Window(700_000, 300_000)):
        found = events.read(path, window)
        assert same(found, event_columns.cut(events_of(true), window, ""))
        (note,) = (note for note in found.warnings if "Left out" in note)
        assert f"a.csv: 2 lines without an event, such as '{line[:5]}" in note
    path.write_text("\n".join([*lines[:1500], *[line] * 41, *lines[1500:]]))
    assert "a.csv has 41 lines without an event" in refusal(path)


def events_of(true: Table) -> Events:
    return Events(**true, width=120, height=90)


def test_zero_bytes_are_no_digits(tmp_path: Path) -> None:
    """Beyond the head; in the head they say that the file is no text."""
    path = saved(tmp_path / "a.csv", table(8000))
    good = path.read_bytes()
    assert len(good) > text.HEAD
    path.write_bytes(good + b"2000001,1\0002,3,1\n")
    assert any("such as '2000001,1?2,3,1'" in note for note in events.read(path).warnings)
    path.write_bytes(good + bytes(5_000_000))
    assert "a line of more than 4,096 bytes" in refusal(path)


@pytest.mark.loads
def test_pieces_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true = table(4000)
    path = saved(tmp_path / "a.csv", true)
    monkeypatch.setattr(text, "PIECE", 1000)
    assert same(events.read(path), true)
    monkeypatch.setattr(text, "KEPT", 3000)
    assert "more than 3,000 events, the most that are read at once" in refusal(path)
    for window in (Window(0, 500_000), Window(600_000, 500_000)):
        assert same(events.read(path, window), event_columns.cut(events_of(true), window, ""))
    with events.opened(path, "a.csv") as opened:
        assert opened.duration_us() == int(true["t"].max())
        assert opened.rates(7).tolist() == binned(true["t"], 7)
        with pytest.raises(MediaError, match="no events in the window"):
            opened.events(Window(3_000_000, 1))
    back = saved(tmp_path / "b.csv", true | {"t": np.roll(true["t"], 2000)})
    assert "step back by more than 10 ms and is too long" in refusal(back, Window(0, 1000))


def test_a_unit_in_brackets_must_be_known(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t [Milliseconds],x,y,p\n1.5,1,1,1\n2,1,1,0\n")
    assert events.read(path).t.tolist() == [1500, 2000]
    path.write_text("t [ticks],x,y,p\n15,1,1,1\n20,1,1,0\n")
    with pytest.raises(MediaError, match="its times in 'ticks', which is no known unit"):
        events.read(path)
