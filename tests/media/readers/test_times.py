"""Times that cannot be microseconds, counters that overflow, and events that were never written:
one rule for all formats whose times have no unit of their own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import event_columns, events
from engine.media_options import Window
from tests.media.readers.streams import records, refusal, same, sentences_of_damage, table

COUNT = 3000
FORMATS = ("csv", "npz", "dict.npy", "records.npy", "h5")


def each(*cases: str) -> list[tuple[str, str]]:
    """Every format with the first case, and one format with the others: the rule is one for all."""
    return [*((form, cases[0]) for form in FORMATS), *(("records.npy", case) for case in cases[1:])]


def saved(folder: Path, form: str, values: dict[str, Any]) -> Path:
    """A file of the columns, whose types are kept where the format has types."""
    path = folder / f"a.{form}"
    if form == "csv":
        rows = zip(*(values[key].tolist() for key in "txyp"), strict=True)
        path.write_text("t,x,y,p\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    elif form == "npz":
        np.savez_compressed(path, **values)
    elif form == "dict.npy":
        np.save(path, np.array(values, object), allow_pickle=True)
    elif form == "records.npy":
        np.save(path, records(values, [(key, values[key].dtype) for key in "txyp"]))
    else:
        h5py = pytest.importorskip("h5py", reason="the extra for event files is not installed")
        with h5py.File(path, "w") as file:
            for key in "txyp":
                file[f"events/{key}"] = values[key]
    return path


STEPS = np.arange(COUNT)
WRONG = {
    "seconds as floats": (np.round(STEPS / STEPS[-1] * 4), "events within 5 microseconds|floats"),
    "floats over 9 ms": (STEPS * 3.0, "floats as times, which span 8,997: .* look like seconds"),
    "seconds": (STEPS // 1000, "3,000 events within 3 microseconds: .* look like seconds or no"),
    "one time": (np.full(COUNT, 7), "3,000 events within 1 microsecond"),
    "zeros": (np.zeros(COUNT, np.int64), "3,000 events within 1 microsecond"),
    "true and false": (STEPS > 1000, "true and false|within 2 microseconds|has t = '?(Fal|Tru)"),
    "nanoseconds": (STEPS * 50_000_000, "42 hours .the limit is 28.: its times look like nano"),
    "since 1970": (
        STEPS + 1_700_000_000 * 10**9,
        "(t = 1,700,000,000|a time of 1.7e.18).*give microseconds",
    ),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("times", "why"), WRONG.values(), ids=WRONG)
def test_times_in_another_unit_are_refused(form: str, times: Any, why: str, tmp_path: Path) -> None:
    path = saved(tmp_path, form, table(COUNT) | {"t": times})
    with pytest.raises(MediaError, match=why):
        events.read(path)
    refusal(path)
    refusal(path, Window(0, 2))


RIGHT = {
    "one event": np.zeros(1, np.int64),
    "three microseconds": np.arange(3),
    "a row of pixels": np.zeros(100, np.int64),
    "a slice of a tenth of a millisecond": np.arange(COUNT) // 30,
    "floats over 10 ms": np.linspace(0, 10_000, COUNT).round(),
    "a day": np.arange(COUNT) * 28_000_000,
    "since 1970": 1_700_000_000 * 10**6 + np.arange(COUNT),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("times", RIGHT.values(), ids=RIGHT)
def test_short_and_long_recordings_are_read(form: str, times: Any, tmp_path: Path) -> None:
    values = table(len(times)) | {"t": times}
    assert same(events.read(saved(tmp_path, form, values)), values)


def test_a_flash_at_the_full_rate_of_a_sensor_is_read() -> None:
    event_columns.refuse_other_units(921_600, 1_000, False, "a")
    with pytest.raises(MediaError, match="921,600 events within 900 microseconds"):
        event_columns.refuse_other_units(921_600, 899, False, "a")


@pytest.mark.parametrize(("form", "place"), each("head", "middle", "tail"))
def test_events_of_zeros_are_refused_above_one_in_a_hundred(
    form: str, place: str, tmp_path: Path
) -> None:
    values = table(COUNT, begin=500)
    at = {"head": 0, "middle": COUNT // 2, "tail": COUNT - 1000}[place]
    for key in "xytp":
        values[key][at : at + 1000] = 0
    with pytest.raises(MediaError, match="1,000 of its 3,000 events are zeros in all columns"):
        events.read(saved(tmp_path, form, values))


@pytest.mark.parametrize("form", FORMATS)
def test_negative_polarity_and_parts_in_another_order_are_noted(form: str, tmp_path: Path) -> None:
    """EventGPT's code draws -1 as brighter, and all others as darker."""
    true, as_published = table(COUNT), form.endswith("npy")
    signed = true["p"].astype(np.int8) * 2 - 1
    back = true | {"t": np.roll(true["t"], 1000), "p": signed}
    shown = back | {"p": signed != 0 if as_published else signed > 0}
    path = saved(tmp_path, form, back)
    found = events.read(path)
    assert same(found, shown)
    how = "drawn as positive" if as_published else "read as 0"
    assert any(f"polarity -1, which is {how}" in note for note in found.warnings)
    assert any("step back 1 time; events are drawn" in note for note in found.warnings)
    inside = (back["t"] >= 300_000) & (back["t"] < 900_000)
    part = events.read(path, Window(300_000, 600_000))
    assert same(part, {key: values[inside] for key, values in shown.items()})


@pytest.mark.loads
@pytest.mark.parametrize("form", FORMATS)
def test_damage_is_one_sentence_or_other_events(form: str, tmp_path: Path) -> None:
    """An archive has checksums, so each damage of it is a sentence or changes nothing."""
    true = table(COUNT)
    path = saved(tmp_path, form, true)
    assert sentences_of_damage(path, true if form == "npz" else None) > 20
