"""Checks that only need recorded answers: pixels, greedy, counted, encodings, cache, input effect.

Boundary: recordings in, findings out; runs no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from engine.storage.schemas import Outcome
from engine.types import Pixels
from engine.verify import equality
from engine.verify.answer_paths import RecordedAnswer
from engine.verify.cache_checks import CacheDamage, KeyChange
from engine.verify.cleanup import ModelState
from engine.verify.input_effect import Ablation
from engine.verify.verdict import CheckFinding, judged

ENCODING = ("hooked", "computed")  # ways that encode, like plain
GIVEN = ("decoupled", "features", "reused")  # ways that get features
LEVELS: dict[Pixels, int] = {"exact": 0, "fast": 2}  # explained in models/pixels.py


def pixels(setting: Pixels, levels: float, used: bool) -> CheckFinding:
    """The difference from the image processor's pixels, and whether these pixels were used."""
    bound = LEVELS[setting]
    faults = [f"Pixels differ from the named image processor's by {levels:.2f} grey levels."]
    faults = faults if levels > bound + 0.01 else []
    faults += [] if used else ["The run used other pixels than the setting gives."]
    relation = "equal" if not levels else f"are within {levels:.2f} grey levels of"
    good = f"The pixels {relation} those of the image processor that the checkpoint names."
    found = judged(faults, good, "", {"setting": setting})
    return replace(found, figure=round(levels, 2), bound=bound, unit="grey levels")


def greedy(answers: Iterable[RecordedAnswer]) -> CheckFinding:
    """Each token has the highest logit of its step."""
    found = list(answers)
    wrong = {a.way: places for a in found if (places := equality.not_the_best(a))}
    steps = {a.way: len(a.ids) for a in found}
    faults = [
        f"{way}: not the highest logit of its step at {len(places)} of {steps[way]} tokens."
        for way, places in wrong.items()
    ]
    good = "Every token of every way has the highest logit of its step."
    return judged(faults, good, "ways", {"positions": wrong})


def counted(
    answers: Iterable[RecordedAnswer], text: Callable[[Sequence[int]], str]
) -> CheckFinding:
    """The result has exactly the tokens that the head computed; `text` decodes ids."""
    found = list(answers)
    counts = {a.way: {"computed": len(a.logits), "returned": len(a.ids)} for a in found}
    faults = [
        f"{way}: {c['computed']} tokens were computed and {c['returned']} returned."
        for way, c in counts.items()
        if c["computed"] != c["returned"]
    ]
    faults += [fault for answer in found for fault in misreported(answer, text)]
    good = (
        "Every way returns exactly the tokens that the language model's head computed, with their "
        "text and context."
    )
    return judged(faults, good, "ways", {"counts": counts})


def misreported(answer: RecordedAnswer, text: Callable[[Sequence[int]], str]) -> Iterable[str]:
    """Faults in what a result reports besides its ids."""
    if answer.result is None:
        return
    generation = answer.result.generation
    if generation.text != text(answer.ids):
        yield f"{answer.way}: the text is not that of its tokens."
    if generation.prompt_tokens != answer.context:
        yield (
            f"{answer.way}: it reports a context of {generation.prompt_tokens} tokens, but "
            f"{answer.context} entered the language model."
        )


def prefix(found: CheckFinding, reused: RecordedAnswer) -> CheckFinding:
    """Fails the finding if the answer did not reuse a prefix."""
    use = reused.result.prefix if reused.result else None
    if found.outcome == "failed" or (use is not None and use.state == "reused"):
        return found
    notes = " ".join(reused.result.notes) if reused.result else ""
    sentence = f"The prefix that another question had left was not reused. {notes}".strip()
    return replace(found, outcome="failed", sentence=sentence)


def encoded_once(
    answers: Mapping[str, RecordedAnswer], pictures: int, units: int | None = None
) -> CheckFinding:
    """Every picture is encoded once, and none if features were given.

    `units`: what the tower takes for these pictures in one encoding, where that is not a batch of
    pictures but of tiles or patches; None if it is the pictures.
    """
    faults = [*_plain_encodings(answers["plain"], pictures, units), *_other_encodings(answers)]
    calls = {way: [vars(seen) for seen in a.seen] for way, a in answers.items()}
    shown = "1 picture" if pictures == 1 else f"{pictures} pictures"
    good = (
        f"plain, hooked and computed each encode {shown} once; with cached features, given "
        "features or a reused prefix nothing is encoded."
    )
    return judged(faults, good, "ways", {"calls": calls, "pictures": pictures, "faults": faults})


def _plain_encodings(plain: RecordedAnswer, pictures: int, units: int | None) -> Iterable[str]:
    tower, *after = plain.seen
    if units is None and tower.pictures != pictures:
        yield f"plain: the vision tower saw {tower.pictures} pictures, but {pictures} are shown."
    if units is not None and tower.pictures != units:
        yield f"plain: the vision tower saw {tower.pictures} tiles or patches instead of {units}."
    for seen in after:
        if seen.calls != tower.calls:
            yield f"plain: {seen.module} ran {seen.calls} times, the tower {tower.calls}."


def _other_encodings(answers: Mapping[str, RecordedAnswer]) -> Iterable[str]:
    for way in (way for way in ENCODING if way in answers):
        if answers[way].seen != answers["plain"].seen:
            yield f"{way}: its calls of the vision modules differ from those of plain."
    for way in (way for way in GIVEN if way in answers):
        if calls := sum(seen.calls for seen in answers[way].seen):
            yield f"{way}: {calls} calls of vision modules, though features were given."


def keys(changes: Sequence[KeyChange]) -> CheckFinding:
    faults = []
    for change in changes:
        if not change.right:
            did = "changed" if change.changed else "did not change"
            faults.append(f"{change.what}: the key {did}, but the opposite is required.")
    good = f"{len(changes)} changes, one at a time: each key changed if and only if it must."
    shown = [vars(change) | {"right": change.right} for change in changes]
    return judged(faults, good, "wrong keys", {"changes": shown})


def damage(found: CacheDamage, plain: RecordedAnswer) -> CheckFinding:
    steps = {
        "noticed": found.noticed,
        "computed again": found.computed_again,
        "same answer": found.ids == plain.ids,
        "read again afterwards": found.read_again,
    }
    faults = [
        f"After a byte was changed on disk: not {name}." for name, ok in steps.items() if not ok
    ]
    good = "A changed byte is detected and reported, and the features are computed again."
    return judged(faults, good, "steps missed", {"steps": steps, "note": found.note})


def left_as_found(
    before: ModelState, after: ModelState, again: equality.AnswerComparison
) -> CheckFinding:
    faults = [f"{name} has changed." for name in before.changed(after)]
    if again.result in ("DRIFT", "MISMATCH"):
        faults.append(f"plain gives another answer afterwards. {again.sentence}")
    good = "plain gives the same answer as before; no hook or changed setting remains."
    return judged(faults, good, "traces", {"faults": faults, "again": again.sentence})


def sight(ablations: Sequence[Ablation], own: tuple[int, ...], rounding: float) -> CheckFinding:
    """Fails if the logits do not change; stays open if the answer never changes."""
    still = [ablation.shown for ablation in ablations if not ablation.moved > rounding]  # NaN too
    same = [ablation.shown for ablation in ablations if ablation.ids == own]
    least = min(ablation.moved for ablation in ablations)
    outcome: Outcome = "passed"
    sentence = f"Other features change its logits by {least:.3g} or more"
    sentence += f" (the answer stays the same with {same[0]})." if same else "."
    if still:
        outcome = "failed"
        sentence = f"Its logits do not change with {' or '.join(still)} as input."
    elif len(same) == len(ablations):
        outcome = "unresolved"
        sentence = (
            f"Its logits change by {least:.3g} or more, but it gives the same answer with "
            f"{' and with '.join(same)}: its answer does not depend on its input."
        )
    return CheckFinding(outcome, sentence, least, rounding, "change of logits, at least")
