"""Checks that only need recorded answers: pixels, greedy, counted, encodings, what is left, and the
comparison itself, which must find differences planted in a recorded answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from engine.models.adapter import Adapter
from engine.types import Pixels
from engine.verify import equality
from engine.verify.answer_paths import RecordedAnswer
from engine.verify.verdict import CheckFinding, judged


@dataclass(frozen=True)
class ModelState:
    """The state that inference must not change.

    `weights`: the sum of torch's in-place change counters of all parameters.  `generator`: the
    state of torch's global random generator.
    """

    hooks: int
    training: bool
    weights: int
    generation_config: str
    generator: bytes
    threads: int

    def changed(self, later: ModelState) -> list[str]:
        """The names of the fields that differ."""
        return [name for name in vars(self) if getattr(self, name) != getattr(later, name)]


def state(adapter: Adapter) -> ModelState:
    model = adapter.model
    return ModelState(
        hooks=sum(_hooks(model)),
        training=any(module.training for module in model.modules()),
        weights=sum(weight._version for weight in model.parameters()),
        generation_config=model.generation_config.to_json_string(),
        generator=bytes(torch.get_rng_state().tolist()),
        threads=torch.get_num_threads(),
    )


def _hooks(model: torch.nn.Module) -> Iterator[int]:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    for module in model.modules():
        yield from (len(getattr(module, kind)) for kind in kinds)


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
    plain = answers["plain"]
    tower, *after = plain.seen
    faults = []
    if units is None and tower.pictures != pictures:
        faults = [
            f"plain: the vision tower saw {tower.pictures} pictures, but {pictures} are shown."
        ]
    if units is not None and tower.pictures != units:
        faults = [f"plain: the vision tower saw {tower.pictures} tiles or patches, not {units}."]
    for seen in after:
        if seen.calls != tower.calls:
            times = f"{seen.calls} times, the tower {tower.calls}"
            faults.append(f"plain: {seen.module} ran {times}.")
    for way, answer in answers.items():
        if way in ENCODING and answer.seen != plain.seen:
            faults.append(f"{way}: its calls of the vision modules differ from those of plain.")
        calls = sum(seen.calls for seen in answer.seen)
        if way in GIVEN and calls:
            faults.append(f"{way}: {calls} calls of vision modules, though features were given.")
    shown = "1 picture" if pictures == 1 else f"{pictures} pictures"
    good = (
        f"plain, hooked and computed each encode {shown} once; with cached features, given "
        "features or a reused prefix nothing is encoded."
    )
    by_way = {way: [vars(seen) for seen in answer.seen] for way, answer in answers.items()}
    return judged(faults, good, "ways", {"calls": by_way, "pictures": pictures, "faults": faults})


def left_as_found(
    before: ModelState, after: ModelState, again: equality.AnswerComparison
) -> CheckFinding:
    faults = [f"{name} has changed." for name in before.changed(after)]
    if again.result in ("DRIFT", "MISMATCH"):
        faults.append(f"plain gives another answer afterwards. {again.sentence}")
    good = "plain gives the same answer as before; no hook or changed setting remains."
    return judged(faults, good, "traces", {"faults": faults, "again": again.sentence})


def planted(plain: RecordedAnswer) -> Iterator[tuple[str, RecordedAnswer]]:
    """Copies of an answer with one difference each, at its start, middle and end."""
    last, vocabulary = len(plain.ids) - 1, plain.logits.shape[-1]
    for place in sorted({0, last // 2, last}):
        ids = list(plain.ids)
        ids[place] = (ids[place] + 1) % vocabulary
        yield f"another token at {place + 1}", replace(plain, ids=tuple(ids))
        logits = plain.logits.clone()
        logits[place] += 0.05 * float(plain.logits.abs().max())
        yield f"other logits at {place + 1}", replace(plain, logits=logits)
    yield "no last token", replace(plain, ids=plain.ids[:-1])
    yield "the last token twice", replace(plain, ids=(*plain.ids, plain.ids[-1]))


def comparison(plain: RecordedAnswer, rounding: float) -> CheckFinding:
    """The comparison must find each planted difference, and none in an unchanged copy."""
    found = {
        what: equality.OUTCOMES[equality.compare(plain, copy, rounding).result] == "failed"
        for what, copy in planted(plain)
    }
    worse = replace(plain, ids=(*plain.ids[:-1], int(plain.logits[-1].argmin())))
    found["a last token that is not the best"] = greedy([worse]).outcome == "failed"
    faults = [f"The comparison does not find {what}." for what, seen in found.items() if not seen]
    if equality.compare(plain, replace(plain, way="copy"), rounding).result != "EXACT":
        faults.append("The comparison finds a difference between equal answers.")
    good = f"All {len(found)} planted differences in {len(plain.ids):,} tokens were found."
    return judged(faults, good, "differences missed", {"planted": found})
