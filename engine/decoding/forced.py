"""Teacher forcing: the log-probability of each given token after a prompt and the tokens before it.

The log-softmax is taken in float32 over the whole vocabulary.  Generation rules and the temperature
do not apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from engine.decoding import batched
from engine.decoding.decode import Decoder, Prompt, WholeModel


def of_tokens(
    decoder: Decoder, prompts: Sequence[Prompt], ids: Sequence[int], wanted: torch.Tensor
) -> torch.Tensor:
    """[B, n, K]: the log-probabilities of K tokens at each of the last n places of the ids.

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
    padded = batched.pad([torch.cat([one, said.to(one.dtype)], dim=1) for one in prompts])
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
