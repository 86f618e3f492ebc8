"""Questions and answers as token batches; several questions share one visual input.

Boundary: texts and truth in, tensors and a loss out. The caller passes the visual rows: embedded
attributes in the training of the language model, projected features later.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.analysis.answer_reading import ATTRIBUTES
from engine.demo.wordings import ASKED, Truth, Voice
from tools.demo_training.tokenizer import FRAMES, draw_answer

Rng = np.random.Generator
# Words about the scene's content; they have a higher weight in the loss.
CONTENT_WORDS = re.compile(
    r"\b(?:left|right|straight|runs|curves|bends|cars?|trucks?|no|free|coming|getting|closer|keeps|"
    r"stays|steady|pulling|moving|away|trees?|buildings?|metal|guardrail|open|fields?|a pedestrian|"
    r"day|daytime|daylight|night|dark)\b",
    re.IGNORECASE,
)
# Motion is hardest to learn, because it requires comparing frames.
MOTION_WORDS = re.compile(r"\b(?:coming|getting|keeps|stays|pulling|moving)\b")
WEIGHT, MOTION_WEIGHT = 5.0, 15.0
OTHERS = tuple(kind for kind in ASKED if kind != "describe")
QUESTIONS_PER_INPUT = 5


@dataclass(frozen=True, eq=False)
class Lesson:
    """B visual inputs: their shared prefix, then the questions with answers, padded to length L."""

    before: Tensor  # (P,) ids ahead of the visual rows
    after: Tensor  # (B, L) ids of question and answer, one pair after the other
    pair: Tensor  # (B, L) number of the pair from 1, 0 for padding
    place: Tensor  # (B, L) position within the pair
    weight: Tensor  # (B, L) weight of a token as a target, 0 for questions and padding


def draw_lesson(
    tokenizer: Any,
    truths: list[Truth],
    voices: list[Voice],
    rng: Rng,
    questions: int,
    frames: Mapping[Voice, tuple[str, str]] = FRAMES,
) -> Lesson:
    """For each input the description and other questions, in random wordings and order.

    `frames` is the prompt of each voice: the text before and after the visual tokens.
    """
    inputs = zip(truths, voices, strict=True)
    rows = [_draw_row(tokenizer, *one, rng, questions, frames) for one in inputs]
    length = max(len(row[0]) for row in rows)

    def pad(column: int, kind: torch.dtype) -> Tensor:
        lines = [row[column] + [0] * (length - len(row[column])) for row in rows]
        return torch.tensor(lines, dtype=kind)

    start = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    return Lesson(
        before=torch.tensor(start + encode(tokenizer, frames[voices[0]][0])),
        after=pad(0, torch.long),
        pair=pad(1, torch.long),
        place=pad(2, torch.long),
        weight=pad(3, torch.float32),
    )


def encode(tokenizer: Any, text: str) -> list[int]:
    """Token ids without <s>."""
    return cast(list[int], tokenizer(text, add_special_tokens=False).input_ids)


def _draw_row(
    tokenizer: Any,
    truth: Truth,
    voice: Voice,
    rng: Rng,
    questions: int,
    frames: Mapping[Voice, tuple[str, str]],
) -> tuple[list[int], list[int], list[int], list[float]]:
    must = ["describe", "motion"] if voice == "video" else ["describe"]
    rest = [kind for kind in OTHERS if kind not in must]
    kinds = must + list(rng.choice(rest, questions - len(must), replace=False))
    ids, pair, place, weight = [], [], [], []
    for number, kind in enumerate(kinds, start=1):
        asked = frames[voice][1].format(q=draw_question(kind, rng))
        question = encode(tokenizer, asked)
        space = "" if asked.endswith("\n") else " "  # an answer on a line of its own has none
        text = space + draw_answer(truth, voice, kind, rng)
        answer, weights = _weigh(tokenizer, text, MOTION_WEIGHT if voice == "video" else WEIGHT)
        ids += question + answer
        pair += [number] * (len(question) + len(answer))
        place += list(range(len(question) + len(answer)))
        weight += [0.0] * len(question) + weights
    return ids, pair, place, weight


def _weigh(tokenizer: Any, text: str, moving: float) -> tuple[list[int], list[float]]:
    """Ids of an answer and its end, each with a weight; `moving`: that of motion words."""
    coded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    spans = [(*match.span(), WEIGHT) for match in CONTENT_WORDS.finditer(text)]
    spans += [(*match.span(), moving) for match in MOTION_WORDS.finditer(text)]
    weights = [
        max((weight for first, last, weight in spans if start < last and end > first), default=1.0)
        for start, end in coded.offset_mapping
    ]
    return [*coded.input_ids, tokenizer.eos_token_id], [*weights, 1.0]


def attention(lesson: Lesson, visual: int) -> Tensor:
    """(B, 1, S, S) additive mask: a pair attends to the prefix and itself, not to other pairs."""
    prefix = len(lesson.before) + visual
    shared = torch.zeros(len(lesson.pair), prefix, dtype=torch.long)
    pair = torch.cat([shared, lesson.pair.masked_fill(lesson.pair == 0, -1)], 1)
    same = pair[:, :, None] == pair[:, None, :]
    shown = pair[:, None, :] == 0
    earlier = torch.ones(pair.shape[1], pair.shape[1]).tril().bool()
    allowed = (same | shown) & earlier
    return torch.zeros(allowed.shape).masked_fill(~allowed, float("-inf"))[:, None]


def positions(lesson: Lesson, visual: int, prefix: Tensor | None = None) -> Tensor:
    """(B, S): positions of the prefix, and of each pair as if it followed the prefix directly.

    With positions of the prefix in three dimensions, (3, P + visual), the result is (3, B, S).
    """
    if prefix is None:
        prefix = torch.arange(len(lesson.before) + visual)
    shared = prefix[..., None, :].expand(*prefix.shape[:-1], *lesson.place.shape[:1], -1)
    follow = (prefix.max() + 1 + lesson.place).expand(*prefix.shape[:-1], *lesson.place.shape)
    return torch.cat([shared, follow], -1)


class AttributeReader(nn.Module):
    """Predicts all attributes from the state after the last visual row; used in training only."""

    def __init__(self, width: int):
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(width, len(values)) for values in ATTRIBUTES.values())

    def loss(self, state: Tensor, truth: Tensor, skip: tuple[str, ...]) -> Tensor:
        """state (B, width), truth (B, attributes); attributes in `skip` are left out."""
        total = torch.zeros(())
        for column, (name, head) in enumerate(zip(ATTRIBUTES, self.heads, strict=True)):
            target = truth[:, column]
            if name not in skip and bool((target >= 0).any()):
                total = total + F.cross_entropy(head(state), target, ignore_index=-1)
        return total


def lesson_loss(
    language: Callable[..., Any],
    embed: nn.Module,
    head: nn.Module,
    rows: Tensor,
    lesson: Lesson,
    depth: int = -1,
    places: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Weighted cross-entropy of the answers, and the state (B, width) after the last row.

    The state is that of the layer `depth`, counted from the last, which is -1. `places` are the
    positions of the prefix where they do not simply count up.
    """
    count = len(rows)
    before = embed(lesson.before).expand(count, -1, -1)
    inputs = torch.cat([before, rows, embed(lesson.after)], 1)
    output = language(
        inputs_embeds=inputs,
        attention_mask=attention(lesson, rows.shape[1]),
        position_ids=positions(lesson, rows.shape[1], places),
        use_cache=False,
        output_hidden_states=True,
    )
    states = output.last_hidden_state
    prefix = lesson.before.shape[0] + rows.shape[1]
    answers = lesson.weight[:, 1:] > 0  # a question comes first, so no target is lost
    logits = head(states[:, prefix:-1][answers]).float()
    losses = F.cross_entropy(logits, lesson.after[:, 1:][answers], reduction="none")
    weights = lesson.weight[:, 1:][answers]
    read = output.hidden_states[depth][:, prefix - 1]
    return (losses * weights).sum() / weights.sum(), read.float()


def draw_question(kind: str, rng: np.random.Generator) -> str:
    """A random wording of the question, sometimes with careless typing."""
    wordings = ASKED[kind]
    usual = 5 if kind == "describe" else 1
    if rng.random() < 0.4:
        return wordings[int(rng.integers(usual))]
    question = wordings[int(rng.integers(len(wordings)))]
    if rng.random() < 0.08:
        question = question.lower()
    return question.rstrip("?.") if rng.random() < 0.08 else question
