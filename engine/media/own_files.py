"""Checks a user's own files by reading each as a run would, and makes a sample of the good ones.
Every message names a file as the user does, escaped."""

from collections.abc import Callable, Sequence
from pathlib import Path

from engine.errors import BadInput, MediaError
from engine.media import events, images, media_files, media_sources, video
from engine.media.media_files import by_number, content, large
from engine.media_options import Window
from engine.plain_files import reason
from engine.quoting import quoted
from engine.types import FRAME_RULES, OWN, Sample

CHECKED = Window(0, 1_000_000)  # of a recording that is longer
OWN_KINDS = (
    "MP4, MOV, MKV, WebM, AVI, TS, GIF, PNG, JPG, or event files (NPY, NPZ, RAW, DAT, AEDAT4, "
    "HDF5, BIN, CSV, TXT)"
)
_UNUSED = "The clip is shown, the pictures are not: remove one or the other."
_ONE_ONLY = {"clip": "clip", "events": "event file"}  # the others of a sample are pictures


def fault(name: str, path: Path, event_images: bool = False) -> str:
    """What is wrong with a file and what to do; "" if it can be used."""
    called = quoted(name)
    try:
        if not path.stat().st_size:
            return f"{called} is empty (0 bytes): export it again."
        field = field_of(name, path)
        _READERS["event images" if event_images and field == "images" else field](path, called)
    except BadInput as error:  # MediaError is one
        return str(error)
    except OSError as error:
        return f"{called} could not be read ({reason(error)}): add it again."
    return ""


def field_of(name: str, path: Path) -> str:
    """The use of a user's file: "clip", "events" or "images"; BadInput for another kind.  The
    content decides, then the name."""
    kind = media_files.kind_of_file(path, name)
    if kind is None:
        raise BadInput(f"The kind of {quoted(name)} is not known: give {OWN_KINDS}.")
    if not kind.field:
        raise BadInput(kind.refusal(quoted(name), f"a supported file ({OWN_KINDS})"))
    return kind.field


def gather(
    files: Sequence[tuple[str, Path]], faults: Sequence[str], event_images: bool = False
) -> tuple[Sample | None, tuple[str, ...]]:
    """One sample of the files, each given as (its name, where it was saved), that have no fault;
    None if there is none.  For each other file a sentence: its name, what is wrong, what to do.

    One clip (or animated GIF), one event file and any number of pictures, which are event images if
    `event_images` is set.  A second clip or event file is not used.
    """
    rejected, names = [sentence for sentence in faults if sentence], list[str]()
    used: dict[str, list[tuple[str, Path]]] = {"clip": [], "events": [], "images": []}
    for (name, path), sentence in zip(files, faults, strict=True):
        if sentence:
            continue
        field = field_of(name, path)
        if field in _ONE_ONLY and used[field]:
            rejected.append(
                f"{quoted(name)} is a second {_ONE_ONLY[field]}, and {quoted(used[field][0][0])} "
                "is used: remove one of them."
            )
            continue
        used[field].append((name, path))
        names.append(name)
    ordered = sorted(used["images"], key=lambda item: by_number(Path(item[0])))
    pictures = tuple(path for _, path in ordered)
    mp4, raw = (next((path for _, path in used[kind]), None) for kind in ("clip", "events"))
    frames, as_events = ((), pictures) if event_images else (pictures, ())
    needs = {
        "Needs event images or a raw .npy.": ("events", raw or as_events),
        "Needs a video or several frames.": ("video", mp4 or frames[1:]),
        "Needs an image or a video.": ("image", mp4 or frames),
    }
    sample = Sample(
        id=", ".join(names[:3]) + ("..." if len(names) > 3 else ""),
        sequence=OWN,
        event_images=as_events,
        events=raw,
        mp4=mp4,
        images=frames,
        missing={kind: why for why, (kind, there) in needs.items() if not there},
        problems=(_UNUSED,) if mp4 and len(frames) > 1 else (),
    )
    return sample if names else None, tuple(rejected)


def _events(path: Path, name: str) -> None:
    """Draws a short recording; of a long one, which needs a window, only the beginning is read."""
    with events.opened(path, name) as recording:
        if recording.duration_us() >= CHECKED.length_us:
            recording.events(CHECKED)
            return
        stream = recording.events(None)
    try:
        events.render(stream)
    except MediaError as error:
        raise MediaError(f"{name} is too short: {error}") from error


def _clip(path: Path, name: str) -> None:
    """Decodes the frames of the default rule, the middle one and the last one."""

    def shown(count: int) -> list[int]:
        chosen = {*video.choose(count, FRAME_RULES[0]), *video.middle(count), count - 1}
        return sorted(index for index in chosen if index >= 0)

    video.decode(large(path), name, shown)


_READERS: dict[str, Callable[[Path, str], object]] = {
    "images": lambda path, name: media_sources.still(content(path), name),
    "event images": lambda path, name: images.decode(content(path), name),
    "events": _events,
    "clip": _clip,
}
