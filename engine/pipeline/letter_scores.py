"""The log-probability of each option's letter as the first token of an answer.

It is the natural logarithm of the softmax, in float32, over the whole vocabulary, without rules of
generation and temperature.  The probabilities of a letter's tokens, with and without a leading
space, are added.  They are computed after the clock has stopped: by one more prefill, or in hooked
mode from the scores of the model's own generate().
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from string import ascii_uppercase
from typing import Any

import torch
from transformers import PreTrainedModel

from engine.models.adapter import Adapter
from engine.types import RunRequest

NO_TOKENS = "No log-probabilities of the letters: the tokenizer has no single token for {letters}."
NO_SCORES = "No log-probabilities of the letters: the model's generate() shows no scores."
_BEFORE = ("", ":")  # tokenizers may treat the first word of a text in another way
Scores = Callable[[], torch.Tensor | None]  # [1, vocabulary] of the first new token


def wanted(request: RunRequest) -> bool:
    """Whether the request asks the sample's own question with lettered options."""
    sample = request.sample
    lettered = bool(sample.choices) and sample.choice_form == "letters"
    return lettered and request.prompt == sample.question.strip()


def read(
    adapter: Adapter, request: RunRequest, scores: Scores, notes: list[str]
) -> Mapping[str, float] | None:
    """The log-probabilities by letter of the sample; None if they were not asked for or are
    unknown, which a note then says.  Computes the scores only if it can."""
    if not wanted(request):
        return None
    letters = ascii_uppercase[: len(request.sample.choices)]
    tokens = {letter: letter_tokens(adapter.tokenizer, letter) for letter in letters}
    if lacking := [letter for letter, ids in tokens.items() if not ids]:
        notes.append(NO_TOKENS.format(letters=", ".join(lacking)))
        return None
    if (found := scores()) is not None:
        logs = torch.log_softmax(found[0].float(), dim=-1)
        values = {
            letter: float(torch.logsumexp(logs[list(ids)], dim=0)) for letter, ids in tokens.items()
        }
        if all(map(math.isfinite, values.values())):  # -infinity: a token that the model excludes
            return values
    notes.append(NO_SCORES)
    return None


def letter_tokens(tokenizer: Any, letter: str) -> tuple[int, ...]:
    """The single tokens of a letter, with and without a leading space."""
    found: dict[int, None] = {}
    for before in _BEFORE:
        begin = _ids(tokenizer, before)
        for text in (letter, f" {letter}"):
            ids = _ids(tokenizer, before + text)
            if ids[:-1] == begin and tokenizer.decode(ids[-1:]).strip() == letter:
                found[ids[-1]] = None
    return tuple(found)


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
    return ids


@contextmanager
def first_scores(model: torch.nn.Module, request: RunRequest) -> Iterator[Scores]:
    """Keeps the scores of the first new token inside a model's own generate(), if they are wanted:
    those of the outermost model that gives any."""
    found: dict[torch.nn.Module, torch.Tensor] = {}
    inside = model.modules() if wanted(request) else ()
    models = [one for one in inside if isinstance(one, PreTrainedModel)]

    def keep(module: torch.nn.Module, _: Any, out: Any) -> None:
        logits = getattr(out, "logits", None)
        if module not in found and isinstance(logits, torch.Tensor):
            found[module] = logits[:, -1].clone()

    with ExitStack() as stack:
        for one in models:
            stack.callback(one.register_forward_hook(keep).remove)
        yield lambda: next((found[one] for one in models if one in found), None)
