"""Badges beside the figures of a run: all that affects how far its times can be trusted."""

from collections.abc import Sequence
from typing import Literal

from engine.machine.load import MachineLoad
from engine.machine.load import words as load_words
from engine.storage.result_rows import ResultRow, Standing
from engine.types import COLD_VISION
from engine.verify import certificates
from ui.widgets.text import escape, ms

Colour = Literal["green", "orange", "violet", "gray", "blue"]
Badge = tuple[str, Colour, str]  # words, colour, explanation
CACHE_HELP = (
    "Stage 3 was not computed in this run: its features were read from disk. The table shows the "
    "total of this run and the total without cache, with the time stage 3 took when computed."
)
VERIFIED_HELP = (
    "Certificate {} proves that decoupled inference gives the model's own answer, for this "
    "checkpoint, code, device and dtype. {} The Verify page shows what was and was not proved."
)
NOT_COVERED_HELP = (
    "The model is verified, but its certificate does not cover this result: what is missing was "
    "not compared with the model's own generate()."
)
UNVERIFIED_HELP = (
    "No certificate covers this checkpoint, code, device, dtype and backend, so it "
    "is not proved that these are times of the model's own inference. The Verify page can prove "
    "it for the device's default backend."
)
SERVED_HELP = (
    "{} answered: what ran there is not proved. Its time is known from the arrival of its "
    "text; vision and prefill are not visible. Its tokens are its own count."
)
COLD_HELP = "The first run after loading includes start-up work: compare later runs instead."
COMPILED_HELP = (
    "Tokens after the first came from a compiled step, equal to the eager one up to rounding."
)
HOOKED_HELP = "The model's own generate() ran. Hooks timed stage 3; stage 4 is the remaining time."
PAUSED_HELP = "Another job used the device just before: this result is left out of the figures."
BATCH_HELP = (
    "Answered in one batch with other samples: the times are those of the whole batch. This sample "
    "was not timed alone."
)
PERTURB_HELP = (
    "The events were changed before the model saw them: this answer is no measure of the unchanged "
    "sample."
)
BUSY_HELP = (
    "Other work used the CPU cores during this run, so its times are longer than on an idle "
    "machine. Measured: {}."
)

PROVED_HELP = (
    "Certificate {}: its answers were those of the same checkpoint on this machine. A server can "
    "change under its name, so this holds for a day."
)


def certificate_badge(standing: Standing, command: str = "") -> Badge:
    """What is proved, or is not; `command` would verify the result with its own settings."""
    if standing.state == "verified":
        timing = standing.open_timing or "Its checks of the times passed too."
        return standing.words, "green", VERIFIED_HELP.format(standing.name, timing)
    if standing.state == "proved":
        return standing.words, "green", PROVED_HELP.format(standing.name)
    if standing.state == "disproved":
        said = " ".join(map(escape, standing.missing))
        return standing.words, "orange", f"{said} Certificate {standing.name}."
    if standing.state == "not covered":
        closest = f" The closest certificate is {standing.name}." if standing.name else ""
        return standing.words, "orange", NOT_COVERED_HELP + closest
    how = f" To verify this result's own settings, in a terminal: `{command}`" if command else ""
    return standing.words, "gray", UNVERIFIED_HELP + how


def busy(load: MachineLoad) -> str:
    return BUSY_HELP.format(load_words(load))


def badges(row: ResultRow, loads: Sequence[MachineLoad | None] = ()) -> list[Badge]:
    """What affects how far the times can be trusted; `loads`: of all shown runs, if several."""
    found = [certificate_badge(row.standing, certificates.command(row.model, row.ran))]
    if row.served:
        told = "; ".join(f"{name}: {value}" for name, value in row.served.told.items())
        word = f" In its own words: {escape(told)}." if told else ""
        if row.standing.state == "unverified":
            found.clear()
        found.append(("the server's word", "blue", SERVED_HELP.format(row.served.host) + word))
    for name, span in (row.batch_spans if row.batch > 1 else row.spans).items():
        if span is not None and span.source == "cached":
            words = f"{name} from cache: {ms(span.ms)}, computed in {ms(span.original_ms)}"
            cold = f" {COLD_VISION}" * (COLD_VISION in row.notes)
            found.append((words, "green", CACHE_HELP + cold))
    marks: dict[Badge, bool] = {
        ("cold run", "orange", COLD_HELP): bool(row.cold),
        ("after a pause", "orange", PAUSED_HELP): bool(row.paused_ms),
        (f"in a batch of {row.batch:,}", "gray", BATCH_HELP): row.batch > 1,
        ("compiled", "blue", COMPILED_HELP): row.ran == "compiled",
        ("hooked", "violet", HOOKED_HELP): row.mode == "hooked",
        (f"perturbed by {escape(row.perturb)}", "violet", PERTURB_HELP): bool(row.perturb),
    }
    found += [badge for badge, holds in marks.items() if holds]
    busy_ones = [load for load in loads or (row.machine_load,) if load is not None and load.busy]
    if busy_ones:
        found.append(("busy machine", "orange", busy(busy_ones[-1])))
    return found
