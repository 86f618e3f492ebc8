"""Stage 4 for several prompts at once: left padding, one prefill, one step for all rows.

Embeddings [1, S, hidden] per row in, token ids per row out, with the eager backend.  Each row has
its own mask and positions, so padding has no effect, and its own seeded generator, so a row draws
the same tokens as in a single run.  A row that has ended stays in the batch, but its tokens are not
counted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache

from engine.decoding import decode
from engine.decoding.decode import Decoder, Prompt, WholeModel
from engine.decoding.generation_rules import AnswerRules
from engine.types import Stop


@dataclass
class BatchAnswer:
    """One row's new ids (with EOS) and why it stopped; None while it continues."""

    ids: list[int] = field(default_factory=list)
    stop: Stop | None = None


def pad(prompts: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Prompts [1, S_i, hidden] as arguments of a language model: embeddings [B, S, hidden], padded
    on the left; mask [B, S], 1 for prompt positions; positions [B, S], 0 for a prompt's first."""
    rows = [prompt[0] for prompt in prompts]
    embeds = pad_sequence(rows, batch_first=True, padding_side="left")
    ones = [torch.ones(len(row), dtype=torch.long, device=row.device) for row in rows]
    mask = pad_sequence(ones, batch_first=True, padding_side="left")
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    return {"inputs_embeds": embeds, "attention_mask": mask, "position_ids": positions}


class BatchDecoder:
    """The state of B answers: cache, mask and positions, which grow by one each step."""

    def __init__(self, decoder: Decoder, prompts: Mapping[str, torch.Tensor]) -> None:
        self._decoder, self._mask = decoder, prompts["attention_mask"]
        self._next = prompts["position_ids"][:, -1:] + 1  # [B, 1]
        self._last = int(decoder.text_config.max_position_embeddings) - 1
        self._cache = DynamicCache(config=decoder.text_config)
        self.scores = self._forward(**prompts)

    def step(self, tokens: torch.Tensor) -> None:
        """tokens [B] -> `scores` [B, vocabulary] for the next tokens."""
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), 1)], dim=1)
        self.scores = self._forward(
            input_ids=tokens[:, None], attention_mask=self._mask, position_ids=self._next
        )
        # Only a row that has ended reaches the end of the context.
        self._next = (self._next + 1).clamp(max=self._last)

    def _forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        out = self._decoder.language_model(**inputs, past_key_values=self._cache, use_cache=True)
        scores: torch.Tensor = self._decoder.head(out.last_hidden_state[:, -1]).float()
        return scores


def generators(rules: Sequence[AnswerRules], on: torch.device) -> list[torch.Generator]:
    return [torch.Generator(on).manual_seed(one.config.seed) for one in rules]


def generate(
    decoder: Decoder,
    prompts: Sequence[torch.Tensor],
    rules: Sequence[AnswerRules],
    on_step: Callable[[list[int]], None],
    cancelled: Callable[[], bool],
) -> list[BatchAnswer]:
    """One answer per prompt [1, S_i, hidden]; in float32 equal to a single run."""
    answers = [BatchAnswer() for _ in prompts]
    batch = BatchDecoder(decoder, pad(prompts))
    decode.refuse_non_finite(batch.scores)
    own = generators(rules, decoder.device)
    while True:
        tokens = torch.cat(
            [
                decode.chosen(batch.scores[row : row + 1], answers[row].ids, one, own[row])
                for row, one in enumerate(rules)
            ]
        )
        on_step(_take(answers, tokens.tolist(), rules))
        if all(answer.stop for answer in answers):
            return answers
        if cancelled():
            return [BatchAnswer(answer.ids, answer.stop or "cancelled") for answer in answers]
        batch.step(tokens)


def _take(
    answers: Sequence[BatchAnswer], tokens: Sequence[int], rules: Sequence[AnswerRules]
) -> list[int]:
    """Adds each row's token to its answer if that continues; returns the added tokens."""
    added = []
    for answer, token, one in zip(answers, tokens, rules, strict=True):
        if answer.stop:
            continue
        answer.ids.append(token)
        added.append(token)
        if token in one.eos_ids:
            answer.stop = "eos"
        elif len(answer.ids) == one.config.max_new_tokens:
            answer.stop = "length"
    return added


def forced_logprobs(
    decoder: Decoder, prompts: Sequence[Prompt], ids: Sequence[int], wanted: torch.Tensor
) -> torch.Tensor:
    """Teacher forcing, [B, n, K]: the log-probabilities of K tokens at each of the last n places of
    the ids: the log-softmax in float32 over the whole vocabulary, without rules and temperature.

    `wanted` [n, K]: these tokens, each instead of the id at its place.  Prompts of embeddings
    [1, S_i, hidden] are computed in one padded pass; prompts for a model's own forward() one by
    one.
    """
    tokens = torch.tensor([list(ids)], dtype=torch.long, device=decoder.device)
    embeds = [one for one in prompts if isinstance(one, torch.Tensor)]
    if len(embeds) == len(prompts):
        scores = _together(decoder, embeds, tokens)
    else:
        scores = torch.cat([_alone(decoder, one, tokens) for one in prompts])
    logs = torch.log_softmax(scores[:, -len(wanted) :].float(), dim=-1)
    return logs.gather(2, wanted.to(logs.device).expand(len(prompts), -1, -1))


def _together(
    decoder: Decoder, prompts: Sequence[torch.Tensor], tokens: torch.Tensor
) -> torch.Tensor:
    """Scores [B, N, vocabulary] before each of the tokens [1, N], in one pass."""
    language_model: Any = decoder.language_model
    said = language_model.get_input_embeddings()(tokens[:, :-1])
    padded = pad([torch.cat([one, said.to(one.dtype)], dim=1) for one in prompts])
    out = language_model(**padded, use_cache=False)
    scores: torch.Tensor = decoder.head(out.last_hidden_state[:, -tokens.shape[1] :])
    return scores


def _alone(decoder: Decoder, prompt: Prompt, tokens: torch.Tensor) -> torch.Tensor:
    """Scores [1, N, vocabulary]: the prefill of an ordinary run, then one pass on its cache."""
    assert isinstance(decoder, WholeModel) and isinstance(prompt, dict)
    first, cache = decoder.prefill(prompt)
    if tokens.shape[1] == 1:
        return first[:, None]
    out = decoder.model(input_ids=tokens[:, :-1], past_key_values=cache, use_cache=True)
    return torch.cat([first[:, None], out.logits.float()], dim=1)
