"""A finished comparison replayed as a race: stages and tokens appear at their recorded times.

CSS animations play it, so that it needs no script and no network; every text is escaped.  Until a
speed is chosen, and where a browser cannot animate it, the finished answers are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate, pairwise
from math import ceil

from engine.palette import DECODE_COLOURS, SERVER_COLOURS, STAGE_COLOURS, family_colour, tones
from engine.quoting import ms, printable, tokens_told
from engine.report.answer_part import PART_NAMES, stage_words
from engine.storage.result_rows import ResultRow
from engine.types import STAGES, Span

Pieces = tuple[tuple[float, str], ...]
PARTS = (*(name for name in STAGES if name != "decode"), "prefill", "steps")  # decode in two
_OF_DECODE = {name: DECODE_COLOURS[f"decode.{name}"] for name in PARTS[-2:]}
COLOURS = {**STAGE_COLOURS, **SERVER_COLOURS, **_OF_DECODE}
SPEEDS = {"1x": 1, "0.25x": 4, "0.1x": 10}  # label -> how many times slower than recorded
WORDS = {"steps": "token steps", **PART_NAMES}
LABEL = "Replay of recorded times"
TOGETHER = "The models ran one after another; the replay starts them together."
COLD = "Cold run: the first after loading includes start-up work."
GROUPED = "Long answers: the words of {} tokens appear together, at the time of the last of them."
MOST_PIECES = 1200  # of all models; a browser animates more of them too late
NO_TEXT_TIMES = "The times of its words were not recorded: the text appears with the last token."


@dataclass(frozen=True)
class ReplayLane:
    """One model's run: its stages, its pieces of text as (ms, text), and its total."""

    label: str
    family: str
    stages: tuple[tuple[str, Span], ...]
    pieces: Pieces
    total_ms: float
    tokens: int | None  # None: a server does not tell
    notes: tuple[str, ...] = ()


def lane(label: str, row: ResultRow, note: str = "") -> ReplayLane | None:
    """The run of a row, with a note; None without times of its own: of a failure or a batch."""
    served = row.served
    times = served.arrivals_ms if served else row.token_ms or ()
    if row.error or row.total_ms is None or not times:
        return None
    names = PARTS if row.prefill and row.steps else STAGES
    stages = tuple((name, span) for name in names if (span := row.spans[name]) is not None)
    stages += tuple((span.name, span) for span in served.spans[1:]) if served else ()
    notes = tuple(filter(None, (note, COLD if row.cold else "")))
    text, ends = printable(row.text or ""), (served or row).text_ends or ()
    if len(ends) == len(times):
        bounds = accumulate((0, *ends[:-1], len(text)), max)
        parts = [text[start:end] for start, end in pairwise(bounds)]
    else:
        parts, times, notes = [text], times[-1:], (*notes, NO_TEXT_TIMES)
    pieces = tuple(zip(times, parts, strict=True))
    return ReplayLane(label, row.family or "", stages, pieces, row.total_ms, row.new_tokens, notes)


def section(lanes: Sequence[ReplayLane]) -> str:
    """The replay of at least one lane, with its controls and its style; one per document."""
    longest = max(lane.total_ms for lane in lanes)
    size = ceil(sum(len(lane.pieces) for lane in lanes) / MOST_PIECES)
    remarks = [TOGETHER] * (len(lanes) > 1) + [GROUPED.format(size)] * (size > 1)
    together = "".join(f"<p>{remark}</p>" for remark in remarks)
    colours = tones([lane.family for lane in lanes])
    body = "\n".join(
        _lane(lane, family_colour(tone), longest, size)
        for lane, tone in zip(lanes, colours, strict=True)
    )
    speeds = "".join(
        f'<label><input type="radio" name="replay-speed" value="{slow}"'
        f"{'' if slow else ' checked'}>{name}</label>"
        for name, slow in ({"Stop": 0} | SPEEDS).items()
    )
    return (
        f'<section class="replay" aria-label="{LABEL}"><style>{_STYLE}</style>\n'
        f'<div class="replay-controls"><b>{LABEL}</b><span role="radiogroup" '
        f'aria-label="Speed of the replay">{speeds}</span>'
        '<label><input type="checkbox" name="replay-pause">Pause</label>'
        f'<span class="replay-clock" style="--end:{longest:.3f};--ms:{round(longest)}"></span>'
        f"</div>\n{together}\n{body}\n</section>"
    )


def _lane(lane: ReplayLane, colour: str, longest: float, size: int) -> str:
    bars = "".join(
        f'<i style="--at:{span.start_ms:.3f};--for:{span.ms:.3f};'
        f"left:{100 * span.start_ms / longest:.3f}%;width:{100 * span.ms / longest:.3f}%;"
        f'background:{COLOURS[name]}"></i>'
        for name, span in lane.stages
    )
    # The words of a stage appear at its end.
    words = "".join(
        _at("b", span.start_ms + span.ms, stage_words(WORDS.get(name, name), span))
        for name, span in lane.stages
    )
    # Groups of `size` pieces, each at the time of its last one, so that none is early.
    groups = [lane.pieces[at : at + size] for at in range(0, len(lane.pieces), size)]
    texts = [(group[-1][0], "".join(piece for _, piece in group)) for group in groups]
    text = "".join(_at("span", at, piece) for at, piece in texts if piece)
    notes = "".join(f"<p>{escape(note)}</p>" for note in lane.notes)
    done = f"{ms(lane.total_ms)} · {tokens_told(lane.tokens)}"
    return (
        f'<div class="replay-lane" style="border-color:{colour}">'
        f'<div class="replay-head"><b>{escape(printable(lane.label))}</b>'
        f"{_at('i', lane.total_ms, done)}</div>"
        f'<div class="replay-track">{bars}</div><div class="replay-stages">{words}</div>{notes}'
        f'<div class="replay-text">{text}</div></div>'
    )


def _at(tag: str, at_ms: float, text: str) -> str:
    """Text that appears at a time."""
    return f'<{tag} class="at" style="--at:{at_ms:.3f}">{escape(text)}</{tag}>'


# \3c is "<": a page's filter of HTML removes a style that has one.
_STYLE = """
@property --ms { syntax: "\\3c integer>"; inherits: true; initial-value: 0; }
.replay { --line: color-mix(in srgb, currentColor 22%, transparent); }
.replay p { margin: 0.2rem 0; font-size: 0.875rem; opacity: 0.8; }
.replay-controls { display: flex; flex-wrap: wrap; align-items: center; gap: 0.4rem 0.9rem; }
.replay-controls label { display: inline-flex; align-items: center; gap: 0.25rem; cursor: pointer;
  margin-right: 0.6rem; }
.replay-controls input { margin: 0; accent-color: #3D93D8; }
.replay-controls input:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
.replay-clock { font-variant-numeric: tabular-nums; min-width: 6rem; }
.replay:has(input:checked:not([value="0"], [name="replay-pause"])) .replay-clock::after {
  counter-reset: ms var(--ms); content: counter(ms) " ms"; }
.replay-lane { margin: 0.7rem 0; padding: 0.1rem 0 0.1rem 0.7rem; border-left: 4px solid; }
.replay-head, .replay-stages { display: flex; flex-wrap: wrap; gap: 0.1rem 0.9rem;
  font-variant-numeric: tabular-nums; }
.replay-head i { font-style: normal; }
.replay-stages { font-size: 0.875rem; } .replay-stages b { font-weight: 400; opacity: 0.8; }
.replay-track { position: relative; height: 0.8rem; margin: 0.3rem 0; border-radius: 0.2rem;
  background: var(--line); overflow: hidden; }
.replay-track i { position: absolute; top: 0; bottom: 0; min-width: 2px; transform-origin: left;
  animation: var(--grow, none) calc(var(--for) * var(--slow, 1) * 1ms) linear
    calc(var(--at) * var(--slow, 1) * 1ms) backwards var(--state, running); }
.replay-text { white-space: pre-wrap; overflow-wrap: anywhere; }
.replay .at { animation: var(--appear, none) 1ms linear
  calc(var(--at) * var(--slow, 1) * 1ms) backwards var(--state, running); }
.replay-clock { animation: var(--count, none)
  calc(var(--end) * var(--slow, 1) * 1ms) linear backwards var(--state, running); }
.replay:has([name="replay-pause"]:checked) { --state: paused; }
@media (prefers-reduced-motion: reduce) {
  .replay-track i { animation-timing-function: step-end; } }
@media print { .replay-controls { display: none; } .replay * { animation: none !important; } }
""" + "".join(  # each speed has keyframes of its own: another name starts the animations anew
    f'.replay:has([value="{slow}"]:checked) {{ --slow: {slow}; --appear: appear-{slow}; '
    f"--grow: grow-{slow}; --count: count-{slow}; }}\n"
    f"@keyframes appear-{slow} {{ from {{ visibility: hidden; }} }}\n"
    f"@keyframes grow-{slow} {{ from {{ transform: scaleX(0); }} }}\n"
    f"@keyframes count-{slow} {{ from {{ --ms: 0; }} }}\n"
    for slow in SPEEDS.values()
)
