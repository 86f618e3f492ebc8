"""Clips: which frames are chosen, that they are the right ones, and what is refused."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from engine.errors import BadInput, MediaError
from engine.media import video
from engine.media.media_files import large
from tests.conftest import REAL
from tests.media import clips


@pytest.mark.parametrize(
    ("n", "rule", "indices"),
    [
        (20, "arange", [0, 2, 5, 7, 10, 12, 15, 17]),
        (20, "spread", [0, 2, 5, 8, 10, 13, 16, 19]),
        (20, "linspace", [0, 2, 5, 8, 10, 13, 16, 19]),
        (9, "spread", [0, 1, 2, 3, 4, 5, 6, 8]),
        (8, "spread", [0, 1, 2, 3, 4, 5, 6, 7]),
        (3, "arange", [0, 0, 0, 1, 1, 1, 2, 2]),
        (3, "spread", [0, 1, 2]),
        (3, "linspace", [0, 0, 0, 0, 1, 1, 1, 2]),
        (0, "arange", []),
        (0, "linspace", []),
    ],
)
def test_the_rules(n: int, rule: str, indices: list[int]) -> None:
    assert video.choose(n, rule) == indices


def test_the_rules_for_every_length() -> None:
    for n in range(1, 700):
        published = np.arange(0, n, n / 8).astype(int)[:8].tolist()
        assert video.choose(n, "arange") == published and len(published) == 8
        for rule in ("spread", "linspace") if n > 8 else ():
            found = video.choose(n, rule)
            assert len(found) == 8 and found[0] == 0 and found[-1] < n
            assert sorted(set(found)) == found


def test_another_number_of_frames_and_an_unknown_rule() -> None:
    assert video.choose(20, "arange", 4) == [0, 5, 10, 15]
    assert video.choose(20, "spread", 1) == [0]
    with pytest.raises(BadInput, match="'first': choose one of arange, spread, linspace"):
        video.choose(20, "first")


def test_the_middle_frame() -> None:
    assert [video.middle(n) for n in (0, 1, 2, 20, 21)] == [[], [0], [1], [10], [10]]


@pytest.mark.loads
@pytest.mark.parametrize("name", ["drop", "road"])
def test_real_clips_equal_a_plain_decoding(name: str) -> None:
    path = REAL / "mp4" / name / "000000.mp4"
    if not path.is_file():
        pytest.skip("the real recordings are not on this machine")
    found = video.decode(path.read_bytes(), "a.mp4", partial(video.choose, rule="arange"))
    assert found.count == {"drop": 21, "road": 221}[name]
    everything = clips.decoded(path.read_bytes())
    for index, image in zip(found.indices, found.images, strict=True):
        np.testing.assert_array_equal(image, everything[index])


@pytest.mark.parametrize("share", [0.5, 0.7, 0.97])
def test_a_cut_clip_whose_index_comes_first(tmp_path: Path, share: float) -> None:
    """Such a file opens, and a decoder that stops at the first error would show its first part."""
    path = tmp_path / "a.mp4"
    clips.write(str(path), 60, movflags="faststart")
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")
    assert video.decode(data, "a.mp4", video.middle).indices == (30,)
    with pytest.raises(MediaError, match=r"a\.mp4 could not be decoded"):
        video.decode(data[: int(len(data) * share)], "a.mp4", video.middle)


def test_a_track_of_an_unknown_codec() -> None:
    data = clips.mp4(20)
    assert data.count(b"avc1") == 2  # The brand in the file's head, and the track's codec.
    at = data.rindex(b"avc1")
    with pytest.raises(MediaError, match=r"(The codec of a\.mp4 is not known|a\.mp4 could not)"):
        video.decode(data[:at] + b"zzzz" + data[at + 4 :], "a.mp4", video.middle)


def damaged(seed: int) -> bytes:
    """A clip with some bytes of its pictures overwritten."""
    data = bytearray(clips.mp4(60))
    rng = np.random.default_rng(seed)
    for at in data.index(b"mdat") + 900 + rng.integers(0, 2500, 3):
        data[at] ^= 255
    return bytes(data)


def test_empty_and_small_files_and_foreign_content(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"a\.mp4 has 999 bytes"):
        video.decode(clips.mp4(20)[:999], "a.mp4", lambda n: [0])
    (tmp_path / "a.mp4").write_bytes(b"")
    with pytest.raises(MediaError, match=r"a\.mp4 is empty"):
        video.decode(large(tmp_path / "a.mp4"), "a.mp4", video.middle)
    (tmp_path / "a.mp4").write_bytes(b"no clip " * 400)
    with pytest.raises(MediaError, match=r"a\.mp4 could not be decoded"):
        video.decode(large(tmp_path / "a.mp4"), "a.mp4", video.middle)


def test_a_gif_that_is_cut_off_says_so() -> None:
    data = clips.encoded("gif", "gif")
    assert video.decode(data, "a.gif", lambda n: [0]).notes == ()
    assert video.decode(data + b"\0\0", "a.gif", lambda n: [0]).notes == ()
    (note,) = video.decode(data[: len(data) // 2], "a.gif", lambda n: [0]).notes
    assert "it may be cut off" in note
