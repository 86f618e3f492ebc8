"""What holds for each format that is read in parts: decoders agree, and windows are exact."""

from pathlib import Path
from typing import Any

import eventcv
import faery
import numpy as np
import pytest

from engine import media
from engine.errors import MediaError
from engine.media import events, recording
from engine.media.readers import aedat4
from engine.media_options import Window
from engine.types import MediaOptions, Sample
from tests.media import event_files
from tests.media.event_files import FORMATS, SIZE, assert_equal, ordered, read, written
from tests.media.readers import test_times
from tests.media.readers.streams import Table, windows_agree

HOUR = 3_600_000_000
SECOND = event_files.random_events(20_000, 1_000_000, begin=5_000)
TWO_BURSTS = np.concatenate(
    [
        event_files.random_events(9_000, 300_000),
        event_files.random_events(9_000, 300_000, begin=40_000_000, seed=1),
    ]
)
STREAMS = {
    "a second": SECOND,
    "vectors": event_files.rows_of_events(20_000),
    "over two overflows of EVT3": event_files.random_events(30_000, 36_000_000),
    "two bursts and silence over two overflows": TWO_BURSTS,
    "one row": event_files.events(np.arange(20_000) * 30, size=(640, 1)),
    "ten hours, an event a minute": event_files.events(np.arange(600) * 60_000_000 + 10 * HOUR),
}


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("form", FORMATS)
def test_windows_are_cut_from_the_whole_recording(form: str, stream: str, tmp_path: Path) -> None:
    expected = ordered(form, STREAMS[stream])
    path = written(tmp_path, form, expected)
    whole = read(path)
    if form == "dat" and stream.startswith("ten hours"):  # 32 bits: only differences are kept
        expected = expected.copy()
        expected["t"] -= expected["t"][0] - np.uint64(whole.t[0])
    assert (whole.width, whole.height) == SIZE
    assert windows_agree(path, columns_of(expected)) > 20


def columns_of(found: Any) -> Table:
    return {key: found[key] for key in "xytp"}


@pytest.mark.parametrize("stream", ["a second", "vectors"])
@pytest.mark.parametrize("form", [form for form in FORMATS if not form.startswith("evt2.1")])
def test_two_other_decoders_agree(form: str, stream: str, tmp_path: Path) -> None:
    path = written(tmp_path, form, STREAMS[stream])
    found = read(path)
    assert_equal(found, faery.events_stream_from_file(path).to_array())
    other = eventcv.load(str(path)).numpy()
    columns = np.stack([found.x, found.y, found.t, found.p], axis=1)
    np.testing.assert_array_equal(columns, other.astype(np.int64))


@pytest.mark.parametrize("form", ["evt2", "evt3"])
def test_overflows_of_the_counter_agree(form: str, tmp_path: Path) -> None:
    """faery follows an overflow only where the events are close to it."""
    lap = 1 << (34 if form == "evt2" else 24)
    path = written(tmp_path, form, event_files.random_events(40_000, 4_000_000, lap - 2_000_000))
    assert_equal(read(path), faery.events_stream_from_file(path).to_array())


@pytest.mark.parametrize("form", FORMATS)
def test_rates_of_an_index_add_up_and_are_near_the_exact_ones(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, form, SECOND)
    with events.opened(path, path.name) as opened:
        exact = opened.rates(20)
        monkeypatch.setattr(recording, "EXACT", 0)
        about = opened.rates(20)
    assert about.sum() == len(SECOND)
    assert np.abs(about - exact).max() < 250  # of 1,000, with a few blocks only


@pytest.mark.loads
@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_is_cut_short_is_refused_or_noted(form: str, tmp_path: Path) -> None:
    some = SECOND[: 9_000 if form.startswith("aedat4") else 300]
    some = ordered(form, some)
    data = written(tmp_path, form, some).read_bytes()
    part, refused, noted = tmp_path / FORMATS[form][0], 0, 0
    word = {"evt2": 4, "evt3": 2}.get(form, 8)
    step = len(data) // 60
    for size in [
        *range(0, 400, 7),
        *range(400, len(data), step),
        *range(len(data) - 24, len(data)),
    ]:
        part.write_bytes(data[:size])
        try:
            found = read(part)
        except MediaError as error:
            refused += 1
            assert part.name in str(error)
            continue
        assert_equal(found, some[: len(found)])
        is_noted = any("cut short" in note for note in found.warnings)
        # Whole words that are missing at the end cannot be noticed in RAW and DAT.
        assert is_noted == (form.startswith("aedat4") or (len(data) - size) % word > 0)
        noted += is_noted
    assert refused and noted


@pytest.mark.parametrize("form", FORMATS)
def test_random_bytes_are_refused(form: str, tmp_path: Path) -> None:
    path = written(tmp_path, form, SECOND[:300])
    data = path.read_bytes()
    start = data.index(b"\n", data.rindex(b"% ")) + 1 if data.startswith(b"%") else 14
    for seed in range(20):
        garbage = np.random.default_rng(seed).bytes(20_000)
        path.write_bytes(data[: start + (2 if form == "dat" else 0)] + garbage)
        with pytest.raises(MediaError):
            read(path)


@pytest.mark.parametrize("form", FORMATS)
def test_events_outside_the_sensor_are_refused(form: str, tmp_path: Path) -> None:
    path = written(tmp_path, form, ordered(form, SECOND[:300]))
    path.write_bytes(path.read_bytes().replace(b"640", b"064"))
    with pytest.raises(MediaError, match="width 64 but has an event at x ="):
        read(path)


def test_a_packet_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "aedat4 zstd", event_files.events(np.zeros(9_000)))
    assert len(read(path)) == 9_000
    monkeypatch.setattr(aedat4, "MAX_PACKET", 60_000)
    with pytest.raises(MediaError, match="more than 60,000 bytes"):
        read(path)


@pytest.mark.loads
def test_events_have_one_digest_in_every_format(tmp_path: Path) -> None:
    stream = event_files.rows_of_events(4000)
    values = {"x": stream["x"], "y": stream["y"], "t": stream["t"].astype("i8"), "p": stream["p"]}
    paths = [test_times.saved(tmp_path, form, values) for form in test_times.FORMATS]
    paths += [event_files.written(tmp_path, form, stream) for form in ("evt3", "dat", "aedat4")]
    for how in (MediaOptions(), MediaOptions(window=Window(100, 300))):
        found = [media.load(Sample("a", "s", events=path), "events", how) for path in paths]
        assert len({one.digest for one in found}) == 1
        assert len({b"".join(map(np.ndarray.tobytes, one.images)) for one in found}) == 1
    fewer = event_files.written(tmp_path, "dat", stream[:2000])  # the control
    assert media.load(Sample("a", "s", events=fewer), "events").digest != found[0].digest
