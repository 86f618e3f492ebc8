"""Faults of stage 4: the choice of tokens, positions, ends, batches."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from transformers import TopPLogitsWarper

from engine.decoding import batched, decode
from engine.pipeline import run_stages, single_run
from tests.faults.fault import Patch, fault, replaces


def settings_ignored(**fixed: Any) -> Callable[[Patch], None]:
    """The decode loop chooses with other settings than were asked for."""

    @replaces(decode, "choose")
    def other(choose: Any, scores: Any, ids: Any, rules: Any) -> int:
        asked = fixed if rules.config.temperature or "temperature" not in fixed else {}
        return choose(scores, ids, replace(rules, config=replace(rules.config, **asked)))

    return other


def two_tokens_kept(patch: Patch) -> None:
    patch.setattr(decode, "TopPLogitsWarper", partial(TopPLogitsWarper, min_tokens_to_keep=2))


@replaces(decode, "generation_config")
def generate_without_top_p(made: Any, rules: Any) -> Any:
    return made(replace(rules, config=replace(rules.config, top_p=1.0)))


@replaces(single_run, "seeded")
def seed_ignored(seeded: Any, seed: int, on: Any) -> Any:
    return seeded(0, on)


@replaces(single_run, "seeded")
def another_seed(seeded: Any, seed: int, on: Any) -> Any:
    return seeded(seed + 1, on)


@replaces(decode, "choose")
def sampled_comparison(_: Any, scores: torch.Tensor, *__: Any) -> int:
    return int(torch.multinomial(torch.softmax(scores / 10, dim=-1), 1))


def positions_shifted(after: int) -> Callable[[Patch], None]:
    """Each step sees its token one place too far, once the context has `after` tokens."""

    @replaces(decode.Decoder, "step")
    def shifted(step: Any, decoder: Any, token: torch.Tensor, kept: Any) -> torch.Tensor:
        if kept.get_seq_length() < after:
            return step(decoder, token, kept)
        place = torch.tensor([[kept.get_seq_length() + 1]])
        model = decoder.language_model
        out = model(input_ids=token, past_key_values=kept, position_ids=place, use_cache=True)
        return decoder.head(out.last_hidden_state[:, -1]).float()

    return shifted


def result_says(**changes: Callable[[dict[str, Any]], Any]) -> Callable[[Patch], None]:
    """A single run's result says something else than what was generated."""

    @replaces(run_stages, "Generation")
    def other(made: Any, **fields: Any) -> Any:
        single = bool(fields["token_ms"])  # a batch has no times of tokens
        new = {name: change(fields) for name, change in changes.items()} if single else {}
        return made(**{**fields, **new})

    return other


def _without_the_end(fields: dict[str, Any]) -> Any:
    ids = fields["token_ids"]
    return ids[:-1] if fields["stop"] == "eos" else ids


def _with_two_ends(fields: dict[str, Any]) -> Any:
    ids = fields["token_ids"]
    return (*ids, ids[-1]) if fields["stop"] == "eos" else ids


@replaces(batched, "generate")
def rows_of_a_batch_swapped(generate: Any, *given: Any, **named: Any) -> Any:
    return generate(*given, **named)[::-1]


@replaces(batched, "pad")
def batch_padded_on_the_right(_: Any, prompts: Any) -> Any:
    longest = max(prompt.shape[1] for prompt in prompts)
    embeds = prompts[0].new_zeros(len(prompts), longest, prompts[0].shape[2])
    mask = torch.zeros(len(prompts), longest, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        embeds[row, : prompt.shape[1]] = prompt[0]
        mask[row, : prompt.shape[1]] = 1
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    return {"inputs_embeds": embeds, "attention_mask": mask, "position_ids": positions}


@replaces(batched, "pad")
def batch_without_a_mask(pad: Any, prompts: Any) -> Any:
    found = pad(prompts)
    return found | {"attention_mask": torch.ones_like(found["attention_mask"])}


@replaces(batched, "generators")
def batch_of_one_generator(generators: Any, rules: Any, on: Any) -> Any:
    return generators(rules, on)[:1] * len(rules)


LOOP, RUN, BATCH = (
    "decoding/test_decode",
    "pipeline/test_single_run",
    "decoding/test_batched pipeline/test_batch_run",
)
FAULTS = (
    fault("temperature ignored", "llava", "sampled", settings_ignored(temperature=1.0), LOOP,
          "The decode loop samples at temperature 1.", "sampling"),
    fault("top_p ignored", "llava", "sampled", settings_ignored(top_p=1.0), LOOP,
          "The decode loop samples from all tokens.", "sampling"),
    fault("two tokens always kept", "llava", "sampled", two_tokens_kept, LOOP,
          "The decode loop draws from two tokens where top_p leaves one.", "sampling"),
    fault("minimum length ignored", "llava", "sampled", settings_ignored(min_new_tokens=0), LOOP,
          "The decode loop ends before the minimum length.", "sampling"),
    fault("generate() without top_p", "llava", "sampled", generate_without_top_p, f"{LOOP} {RUN}",
          "The hooked way's generate() does not get top_p.", "sampling"),
    fault("seed ignored", "llava", "sampled", seed_ignored, f"{RUN} {LOOP}",
          "Every run samples from seed 0.", "sampling"),
    fault("another seed", "llava", "sampled", another_seed, f"{RUN} {LOOP}",
          "Every run samples from the next seed.", "sampling"),
    fault("sampled comparison", "llava", "greedy", sampled_comparison, LOOP,
          "Greedy decoding samples.", "sampling"),
    fault("positions off by one", "llava", "equal_decoupled", positions_shifted(0), LOOP,
          "Each step sees its token one position too far."),
    fault("positions wrong after 256", "llava", "long", positions_shifted(256), LOOP,
          "From position 256 on each token stands one position too far.", "length"),
    fault("end token dropped", "llava", "sampled",
          result_says(token_ids=_without_the_end), RUN,
          "A result leaves out the end token.", "length"),
    fault("end token doubled", "llava", "sampled", result_says(token_ids=_with_two_ends), RUN,
          "A result has the end token twice.", "length"),
    fault("always stopped by length", "llava", "sampled",
          result_says(stop=lambda fields: "length"), RUN,
          "A result says that it stopped at the limit, wherever it ended.", "length"),
    fault("ids cut by the prompt's length", "llava", "counted equal_hooked equal_decoupled",
          result_says(token_ids=lambda f: f["token_ids"][f["prompt_tokens"] :]), RUN,
          "New ids are cut as if the prompt stood before them."),
    fault("text of another answer", "llava", "counted",
          result_says(text=lambda fields: "A red elephant."), RUN,
          "A result has the text of another answer.", "text"),
    fault("context miscounted", "llava", "counted",
          result_says(prompt_tokens=lambda fields: fields["prompt_tokens"] - 4), RUN,
          "The context leaves out the visual tokens."),
    fault("token times made up", "llava", "clock",
          result_says(token_ms=lambda f: tuple(1000.0 + 10.0 * i for i in range(
              len(f["token_ids"])))), RUN,
          "Token times are evenly spaced, after the run.", "token times"),
    fault("token time missing", "llava", "clock",
          result_says(token_ms=lambda fields: fields["token_ms"][:-1]), RUN,
          "The last token has no time.", "token times"),
    fault("tokens reported together", "llava", "clock",
          result_says(token_ms=lambda f: f["token_ms"][:1] + f["token_ms"][-1:] * (
              len(f["token_ms"]) - 1)), RUN,
          "All tokens after the first have the time of the last.", "token times"),
    fault("token times evened out", "llava", "",
          result_says(token_ms=lambda f: tuple(
              f["token_ms"][0] + (f["token_ms"][-1] - f["token_ms"][0]) * i / max(
                  1, len(f["token_ms"]) - 1) for i in range(len(f["token_ms"])))), RUN,
          "Token times are spread evenly between the first and the last.", "token times"),
    fault("rows of a batch swapped", "llava", "equal_batch", rows_of_a_batch_swapped, BATCH,
          "Answers of a batch are given to the wrong samples.", "batch"),
    fault("batch padded on the right", "llava", "equal_batch", batch_padded_on_the_right, BATCH,
          "Prompts of a batch are padded at their ends.", "batch"),
    fault("batch without a mask", "llava", "equal_batch", batch_without_a_mask, BATCH,
          "Padding of a batch is attended to.", "batch"),
    fault("batch of one generator", "llava", "", batch_of_one_generator, BATCH,
          "Sampled rows of a batch draw from one generator.", "batch"),
)  # fmt: skip
