"""The generation settings of a checkpoint that change its greedy answer.

Repetition penalties, forbidden words and similar settings are applied by transformers' logits
processors, in the order of its generate().  How tokens are drawn (sampling, beams) is the user's
choice; `notes` says if the checkpoint has another default.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from engine.types import DecodeConfig

if TYPE_CHECKING:
    import torch

FOLLOWED = (
    *("sequence_bias", "repetition_penalty", "no_repeat_ngram_size", "bad_words_ids"),
    *("min_length", "min_new_tokens", "forced_bos_token_id", "forced_eos_token_id"),
    *("exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens"),
)
_NO_EFFECT = {"repetition_penalty": 1, "guidance_scale": 1, "encoder_repetition_penalty": 1}
# Settings that change a greedy answer and are not supported.
_REFUSED = (
    *("guidance_scale", "encoder_repetition_penalty", "encoder_no_repeat_ngram_size"),
    *("penalty_alpha", "stop_strings", "token_healing", "watermarking_config", "constraints"),
    *("force_words_ids", "dola_layers", "custom_generate"),
)
_SAMPLING = ("temperature", "top_p", "top_k")


def refused(settings: Mapping[str, Any]) -> str | None:
    return next((name for name in _REFUSED if _acts(settings, name)), None)


def followed(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in FOLLOWED if _acts(settings, name)}


def notes(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Notes about the checkpoint's own settings, for its card and results."""
    found = []
    if names := ", ".join(followed(settings)):
        found.append(f"The checkpoint's generation settings are used: {names}.")
    if settings.get("do_sample"):
        given = [f"{n} {settings[n]:g}" for n in _SAMPLING if settings.get(n) is not None]
        listed = f" ({', '.join(given)})" if given else ""
        found.append(
            f"The checkpoint's default is sampling{listed}; this run uses its own temperature."
        )
    if (settings.get("num_beams") or 1) > 1:
        found.append(
            f"The checkpoint's default is beam search with {settings['num_beams']} beams, "
            "which is not used."
        )
    return tuple(found)


def _acts(settings: Mapping[str, Any], name: str) -> bool:
    value = settings.get(name)
    if value is None or value is False or name.endswith("_id"):
        return value is not None and value is not False and value != []
    return bool(value != _NO_EFFECT.get(name, 0)) and value not in ([], {}, "")


def ids(settings: Mapping[str, Any]) -> list[int]:
    """Every token id that these followed settings name."""
    found = list[int]()
    for name, value in settings.items():
        if name.endswith("_id"):
            found += value if isinstance(value, list) else [value]
        elif name.endswith("suppress_tokens"):
            found += value
        elif name == "bad_words_ids":
            found += [token for word in value for token in word]
        elif name == "sequence_bias":
            found += [token for word, _ in value for token in word]
    return found


@dataclass(frozen=True, eq=False)
class AnswerRules:
    """What decides the tokens of one answer, resolved once for its prompt.

    `config`: the request's settings, with a limit that the context has room for; `checkpoint`: the
    checkpoint's that are followed; `counted`: gives the ids that generate() would count, none if it
    gets embeddings only; it is called in stage 4, because it may use the device; `context`: the
    prompt's length including its visual rows.
    """

    config: DecodeConfig
    eos_ids: tuple[int, ...]
    checkpoint: Mapping[str, Any] = field(default_factory=dict)
    counted: Callable[[], Sequence[int]] = tuple
    context: int = 0
    device: torch.device | str = "cpu"

    def __call__(self, scores: torch.Tensor, ids: Sequence[int]) -> torch.Tensor:
        """scores [1, vocabulary] after these new ids -> the scores with the rules applied."""
        if not self.processors:
            return scores
        import torch

        so_far = torch.tensor([[*self.prompt, *ids]], dtype=torch.long, device=scores.device)
        for processor in self.processors:
            scores = processor(so_far, scores)
        return scores

    def options(self) -> dict[str, Any]:
        """Options for a GenerationConfig, with the larger of both `min_new_tokens`."""
        most = self.config.max_new_tokens
        least = max(self.checkpoint.get("min_new_tokens", 0), self.config.min_new_tokens)
        found = {**self.checkpoint, "min_new_tokens": min(least, most) or None}
        if "min_length" in found:
            found["min_length"] = min(found["min_length"], self.context + most)
        return found

    @cached_property
    def prompt(self) -> tuple[int, ...]:
        return tuple(self.counted())

    @cached_property
    def processors(self) -> tuple[Callable[..., Any], ...]:
        """Those that transformers' generate() makes of the checkpoint's settings; none without."""
        if not self.checkpoint:
            return ()
        import torch
        from transformers import GenerationConfig, GenerationMixin

        class Maker(GenerationMixin):
            config = SimpleNamespace(is_encoder_decoder=False)

        prompt = len(self.prompt)
        values = self.options()
        least, shortest = values["min_new_tokens"] or 0, values.pop("min_length", 0)
        # generate() subtracts a prompt of embeddings from min_length
        shortest = least + prompt if least else max(shortest - (0 if prompt else self.context), 0)
        given = GenerationConfig(**values, min_length=shortest or None)
        given.max_length = prompt + self.config.max_new_tokens
        given._eos_token_tensor = torch.tensor(list(self.eos_ids), device=self.device)
        with warnings.catch_warnings():  # penalties of a prompt of embeddings count new tokens only
            warnings.simplefilter("ignore", UserWarning)
            return tuple(Maker()._get_logits_processor(given, prompt, device=str(self.device)))
