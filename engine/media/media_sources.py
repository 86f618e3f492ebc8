"""The sources of each kind of media, in the order in which they are tried.  Every source keeps its
files' bytes for the digest.  A clip may be long, so it is read again for the digest and refused if
it has changed.

A user's own files are checked by reading each as a run would, and the good ones become a sample.
Every message names such a file as the user does, escaped.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from engine.errors import BadInput, MediaError
from engine.media import decoding, events, images, media_files, video
from engine.media.media_files import Data, by_number, content, label, large, opened
from engine.media_options import COUNT_SPLIT, Split, Window, time_text
from engine.plain_files import reason
from engine.quoting import count as counted
from engine.quoting import quoted
from engine.types import (
    FRAME_RULES,
    OWN,
    ChosenFrames,
    Image,
    Media,
    MediaKind,
    MediaOptions,
    Sample,
)

MAX_ROOM = 1 << 30  # bytes of a sample's picture files and of their pixels
PREVIEW_US = 500_000  # of a recording, from its beginning: a long one is not read for a preview
_SHOWN_INDICES = 16
_USUAL = (None, COUNT_SPLIT, "")  # settings that ask for no other pictures


# The pictures without a digest, the files' bytes that decide them, and how they were decided.
Loaded = tuple[Media, Sequence[Data], str]
Read = Callable[[], Loaded]
CHECKED = Window(0, 1_000_000)  # of a recording that is longer
OWN_KINDS = (
    "MP4, MOV, MKV, WebM, AVI, TS, GIF, PNG, JPG, or event files (NPY, NPZ, RAW, DAT, AEDAT4, "
    "HDF5, BIN, CSV, TXT)"
)
_UNUSED = "The clip is shown, the pictures are not: remove one or the other."
_ONE_ONLY = {"clip": "clip", "events": "event file"}  # the others of a sample are pictures


def of(sample: Sample, kind: MediaKind, how: MediaOptions) -> list[tuple[str, Read]]:
    """(name, way to read) of the sample's sources for one kind, best first; MediaError if the
    settings do not fit what the sample has."""
    sources: list[tuple[str, Read]] = []
    if kind == "events":  # prepared event images first, unless a setting asks for others than those
        options = {"window": how.window, "split": how.split, "perturb": how.perturbed}
        asked = (f"{name} {value}" for name, value in options.items() if value not in _USUAL)
        changed = next(asked, "")
        if sample.event_images and not changed:
            sources.append(("event images", partial(_event_images, sample.event_images)))
        if sample.events is not None:
            sources.append(("raw events", partial(_rendered, sample, how)))
        elif changed and sample.event_images:
            raise MediaError(
                f"Sample {sample.id} has event images only, and {changed} needs raw events: leave "
                "it out or pick another sample."
            )
        return sources
    if how.perturbed:
        raise MediaError(
            f"perturb {how.perturbed} changes raw events only, and the model is shown frames: "
            "leave it out, or choose a model that is shown event images."
        )
    rule = "middle" if kind == "image" else how.frames
    choice = video.middle if kind == "image" else partial(video.choose, rule=rule)
    if sample.mp4 is not None:
        sources.append(("the clip", partial(_clip, sample.mp4, choice, kind, rule)))
    for paths, what in ((sample.frames, "frame folder"), (sample.images, "images")):
        if paths:
            sources.append((f"the {what}", partial(_folder, paths, choice, what, kind, rule)))
    if len(sample.images) != 1:
        return sources
    # A single picture beside a clip is meant for the image model.
    return sources[::-1] if kind == "image" else sources[:-1]


def previews(sample: Sample) -> Iterator[Image]:
    """One picture of each source that can be read, the cheapest first."""
    for paths in (sample.images, sample.frames, sample.event_images):
        with suppress(MediaError):  # the run reports the error
            yield from (still(content(path), label(path)) for path in paths[len(paths) // 2 :][:1])
    with suppress(MediaError):
        if sample.mp4:
            yield next(decoding.pictures(large(sample.mp4), label(sample.mp4)))
    with suppress(MediaError):
        if sample.events:
            part = sample.window or Window(0, PREVIEW_US)
            part = Window(part.start_us, min(part.length_us, PREVIEW_US))
            yield _rendered(sample, MediaOptions(split=Split(parts=1), window=part))[0].images[0]


def _event_images(paths: Sequence[Path]) -> Loaded:
    data, pictures = _decoded(paths, images.decode)
    return Media("events", tuple(pictures), "", f"{len(data)} event images"), data, "event images"


def _decoded(
    paths: Sequence[Path], decode: Callable[[bytes, str], Image]
) -> tuple[list[bytes], list[Image]]:
    """Every file's bytes and picture; MediaError if together they need too much memory."""
    contents, pictures, room = list[bytes](), list[Image](), MAX_ROOM
    for path in paths:
        contents.append(content(path))
        pictures.append(decode(contents[-1], label(path)))
        room -= len(contents[-1]) + pictures[-1].nbytes
        if room < 0:
            raise MediaError(
                f"{len(paths):,} pictures take over {MAX_ROOM:,} bytes ({label(path)} is one of "
                "them): give fewer or smaller ones."
            )
    return contents, pictures


def still(data: bytes, name: str) -> Image:
    """A picture: PNG, JPEG or a GIF with one picture."""
    if media_files.kind_by_content(data[: media_files.HEAD]) is not media_files.GIF:
        return images.decode(data, name)
    if media_files.moves(data):
        raise MediaError(f"{name} is an animated GIF, not a picture: give it as a clip.")
    return next(decoding.pictures(data, name))


def _rendered(sample: Sample, how: MediaOptions) -> Loaded:
    """The pictures of the window; the digest covers the events, whatever file they are from."""
    assert sample.events is not None
    name = label(sample.events)
    window, changes = how.window_of(sample), how.perturbed
    plain = events.read(sample.events, window)
    stream = events.perturbed(plain, how, sample.id, name)
    try:
        pictures = tuple(events.render(stream, how.split, how.extent))
    except MediaError as error:
        after = f" after {changes}" if changes else ""
        raise MediaError(f"{name} is too short{after}: {error}") from error
    where = f" from {time_text(window.start_us)} on" if window else ""
    slices = f"{how.split.parts} slices" if how.split.rule == "count" else how.split.words
    source = f"raw events: {len(stream):,} in {stream.duration_ms:,.1f} ms{where}, {slices}"
    notes = list(stream.warnings)
    if changes:
        source += f", perturbed by {changes}"
        notes.append(
            f"Perturbed by {changes}: {len(stream):,} events in {stream.duration_ms:,.1f} ms "
            f"instead of {len(plain):,} in {plain.duration_ms:,.1f} ms."
        )
    sides = [f"{image.shape[1]} x {image.shape[0]}" for image in pictures]
    if len(set(sides)) > 1:
        notes.append(
            f"The event pictures differ in size ({', '.join(sides)}), because each is as large as "
            "the area of its slice's events."
        )
    sizes = {picture.shape for picture in pictures}  # a file may or may not state the sensor's
    tag = f"raw events {how.split} {sorted(sizes)}"
    tag += f" perturbed {changes} {sample.id}" if changes else ""
    columns = (stream.x, stream.y, stream.t, stream.p)  # in one byte order on all machines
    data = [column.astype(column.dtype.newbyteorder("<")).tobytes() for column in columns]
    return Media("events", pictures, "", source, how.extent, tuple(notes)), data, tag


def _clip(path: Path, choice: video.Choice, kind: MediaKind, rule: str) -> Loaded:
    data, name = large(path), label(path)
    clip = video.decode(data, name, choice)
    notes = (*clip.notes, *_repeated("clip", clip.indices, clip.count))
    with opened(data) as file:
        form = media_files.kind_by_content(file.read(media_files.HEAD)) or media_files.MP4
    source = _source(form.short, clip.indices, clip.count)
    chosen = ChosenFrames(clip.indices, clip.count, path, video.rate(data, name))
    return Media(kind, clip.images, "", source, rule, notes, chosen), [data], "mp4"


def _folder(
    paths: Sequence[Path], choice: video.Choice, what: str, kind: MediaKind, rule: str
) -> Loaded:
    """The chosen pictures of a sequence; the others are not read."""
    single = what.split()[0].rstrip("s")
    indices = choice(len(paths))
    chosen = list(dict.fromkeys(indices))
    data, decoded = _decoded([paths[i] for i in chosen], still)
    pictures = dict(zip(chosen, zip(data, decoded, strict=True), strict=True))
    notes = _repeated("list" if single == "image" else "folder", indices, len(paths))
    used, shown = zip(*(pictures[i] for i in indices), strict=True)
    source, frames = _source(what, indices, len(paths)), ChosenFrames(tuple(indices), len(paths))
    made = Media(kind, shown, "", source, rule, tuple(notes), frames)
    return made, used, f"{len(paths)} pictures"


def _repeated(what: str, indices: Sequence[int], count: int) -> Iterator[str]:
    """A note if the rule shows a frame more than once."""
    if len(set(indices)) < len(indices):
        frames = counted(count, "frame")
        yield f"The {what} has {frames} and the model is shown {len(indices)}: frames repeat."


def _source(what: str, indices: Sequence[int], count: int) -> str:
    numbers = ", ".join(str(i) for i in indices[:_SHOWN_INDICES])
    return f"{what}: frame{'s'[: len(indices) > 1]} {numbers} of {count:,}"


def own_fault(name: str, path: Path, event_images: bool = False) -> str:
    """What is wrong with a file and what to do; "" if it can be used."""
    called = quoted(name)
    try:
        if not path.stat().st_size:
            return f"{called} is empty (0 bytes): export it again."
        field = own_field(name, path)
        _READERS["event images" if event_images and field == "images" else field](path, called)
    except BadInput as error:  # MediaError is one
        return str(error)
    except OSError as error:
        return f"{called} could not be read ({reason(error)}): add it again."
    return ""


def own_field(name: str, path: Path) -> str:
    """The use of a user's file: "clip", "events" or "images"; BadInput for another kind.  The
    content decides, then the name."""
    kind = media_files.kind_of_file(path, name)
    if kind is None:
        raise BadInput(f"The kind of {quoted(name)} is not known: give {OWN_KINDS}.")
    if not kind.field:
        raise BadInput(kind.refusal(quoted(name), f"a supported file ({OWN_KINDS})"))
    return kind.field


def own_sample(
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
        field = own_field(name, path)
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


def _check_events(path: Path, name: str) -> None:
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


def _check_clip(path: Path, name: str) -> None:
    """Decodes the frames of the default rule, the middle one and the last one."""

    def shown(count: int) -> list[int]:
        chosen = {*video.choose(count, FRAME_RULES[0]), *video.middle(count), count - 1}
        return sorted(index for index in chosen if index >= 0)

    video.decode(large(path), name, shown)


_READERS: dict[str, Callable[[Path, str], object]] = {
    "images": lambda path, name: still(content(path), name),
    "event images": lambda path, name: images.decode(content(path), name),
    "events": _check_events,
    "clip": _check_clip,
}
