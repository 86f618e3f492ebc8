"""Decoding some packets equals decoding all: every kind of clip, and what is left to the latter."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import decoding, video
from tests.conftest import slow_unless
from tests.media import clips

pytestmark = pytest.mark.loads

KINDS = ("mp4", "matroska", "mpegts")
CHOICES = [partial(video.choose, rule=rule) for rule in ("arange", "spread", "linspace")]
CHOICES.append(video.middle)
X264 = {
    "closed groups": {"g": "12"},
    "open groups": {"g": "12", "x264-params": "asm=0:open-gop=1"},
    "one group": {"g": "250"},
    "no B-frames": {"g": "12", "bf": "0"},
    "few B-frames": {"g": "30", "bf": "3"},
    "16 B-frames": {"g": "50", "x264-params": "asm=0:bframes=16:b-adapt=0:b-pyramid=2"},
    "strict pyramid": {"x264-params": "asm=0:bframes=5:b-adapt=0:b-pyramid=1"},
    "intra-refresh": {"g": "12", "intra-refresh": "1"},
    "intra-only": {"g": "1"},
    "zero latency": {"g": "12", "tune": "zerolatency"},
    "slices": {"g": "12", "slices": "4"},
    "repeated headers": {"g": "12", "x264-params": "asm=0:repeat-headers=1:aud=1"},
    "timing messages": {
        "g": "12",
        "x264-params": "asm=0:nal-hrd=vbr:vbv-maxrate=100:vbv-bufsize=100",
    },
}
OTHERS = {
    "libx265": {"x265-params": "log-level=none"},
    "libvpx-vp9": {"cpu-used": "8"},
    "mpeg4": {},
    "mpeg2video": {},
}


def some(data: bytes, choice: video.Choice) -> tuple[Sequence[np.ndarray], Sequence[int], int]:
    """The frames by the quick way alone."""
    found = decoding.some_frames(data, "a", choice)
    assert found is not None
    return found.images, found.indices, found.count


def check_equal(data: bytes, choice: video.Choice, quick: bool) -> None:
    everything = clips.decoded(data)
    # The control: a neighbour would not pass for the frame itself.
    assert all(not np.array_equal(a, b) for a, b in pairwise(everything))
    wanted = list(choice(len(everything)))
    clip = video.decode(data, "a", choice)
    assert (list(clip.indices), clip.count, clip.notes) == (wanted, len(everything), ())
    np.testing.assert_array_equal(clip.images, [everything[i] for i in wanted])
    if quick:
        images, indices, count = some(data, choice)
        assert (list(indices), count) == (wanted, len(everything))
        np.testing.assert_array_equal(images, [everything[i] for i in wanted])
    else:
        assert decoding.some_frames(data, "a", choice) is None


@pytest.mark.parametrize("kind", slow_unless(KINDS[:1], KINDS))
@pytest.mark.parametrize("how", X264)
def test_h264_equals_a_whole_decoding(how: str, kind: str) -> None:
    data = clips.encoded(kind, **X264[how])
    for choice in CHOICES:
        check_equal(data, choice, quick=True)


def test_fields_fragments_and_lost_beginnings_are_decoded_whole() -> None:
    one = clips.encoded("mpegts", g="12")
    between = clips.encoded("mpegts", times=range(25, 3025, 50), g="12")
    for data in (
        clips.encoded(g="12", flags="+ildct+ilme", **{"x264-params": "asm=0:tff=1"}),
        # The header of fragments says nothing of the order of frames.
        clips.encoded(g="12", container={"movflags": "frag_keyframe+empty_moov"}),
        one + one,
        one + between,
    ):
        check_equal(data, CHOICES[0], quick=False)
    late = one[188 * 5 :]
    assert decoding.some_frames(late, "a", CHOICES[0]) is None
    found = video.decode(late, "a", CHOICES[0])
    np.testing.assert_array_equal(found.images, [clips.decoded(late)[i] for i in found.indices])


@pytest.mark.parametrize("kind", slow_unless(KINDS[:1], KINDS))
def test_a_damaged_clip_shows_what_a_whole_decoding_shows(kind: str) -> None:
    """Or it is decoded whole: never a picture that the whole decoding would not have given."""
    base = clips.encoded(kind, g="12", container={"movflags": "faststart"} if kind == "mp4" else {})
    quick = whole = 0
    for seed in range(40):
        data = bytearray(base)
        for at in np.random.default_rng(seed).integers(len(base) // 3, len(base), 2):
            data[at] ^= 85
        if decoding.some_frames(bytes(data), "a", CHOICES[0]) is None:
            whole += 1
            continue
        images, indices, _ = some(bytes(data), CHOICES[0])
        try:
            everything = video._of_all(bytes(data), "a", CHOICES[0])
        except MediaError:
            continue  # a packet that nobody needs cannot be decoded
        quick += 1
        assert list(everything.indices) == list(indices)
        np.testing.assert_array_equal(images, everything.images)
    assert quick and whole
