"""The verifier can fail: every check is tripped by at least one planted sin, and by no clean run.

A sin is planted in what runs (a model, the pipeline, the cache, the clock), never in the verifier.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine import cache, decode, media, pipeline, prefixes, timing
from engine.models import registry
from engine.models.base import Adapter
from engine.models.eventgpt import EventGPTAdapter
from engine.models.hf_llava import PlaceholderAdapter
from engine.models.llava import LlavaAdapter
from engine.models.pixels import Plain
from engine.prefixes import Prefix, Prefixes
from engine.timing import VisionProbe
from engine.types import Generation
from engine.verify import observer, run, stages
from engine.verify.verdict import CHECKS
from tests.verify.conftest import FAMILIES, Verify

Patch = pytest.MonkeyPatch
TIMED = {"accounted", "stage3", "observer"}  # a busy machine may leave these open, or worse
UNSTEADY = TIMED | {"clock"}  # and a thread that waits between two clocks sets them apart
LONG_S = 0.03  # a wait that no tiny model's run can hide


def adaptor_applied_twice(patch: Patch) -> None:
    once = EventGPTAdapter.encode

    def twice(self: Any, prepared: Any) -> torch.Tensor:
        return self.model.model.feature_adaptor(once(self, prepared))

    patch.setattr(EventGPTAdapter, "encode", twice)


def adaptor_twice_in_the_model_itself(patch: Patch) -> None:
    network = registry.load(registry.entry("tiny-eventgpt")).model
    projected = network.visval_encode
    patch.setattr(
        network, "visval_encode", lambda pixels: network.model.feature_adaptor(projected(pixels))
    )


def one_event_image_instead_of_five(patch: Patch) -> None:
    whole = EventGPTAdapter.encode
    patch.setattr(
        EventGPTAdapter,
        "encode",
        lambda self, prepared: whole(self, replace(prepared, pixels=prepared.pixels[:1])),
    )


def encodes_again(patch: Patch) -> None:
    embed = PlaceholderAdapter.embed
    patch.setattr(
        PlaceholderAdapter,
        "embed",
        lambda self, prepared, rows: embed(self, prepared, self.encode(prepared)),
    )


def probe_overwrites(patch: Patch) -> None:
    """The last module's time replaces all others'; the tower is slow, so that it must count."""
    tower = registry.load(registry.entry("tiny-llava")).model.model.vision_tower
    tower.register_forward_pre_hook(lambda *_: time.sleep(LONG_S))
    leave = VisionProbe._leave

    def overwrite(self: VisionProbe, index: int) -> Callable[..., None]:
        add = leave(self, index)

        def hook(*arguments: Any) -> None:
            self.ms = 0.0
            add(*arguments)

        return hook

    patch.setattr(VisionProbe, "_leave", overwrite)


def probe_changes_what_it_sees(patch: Patch) -> None:
    patch.setattr(VisionProbe, "_enter", lambda self, index: lambda module, arguments: None)
    patch.setattr(
        VisionProbe,
        "_leave",
        lambda self, index: (
            lambda module, arguments, out: -out if isinstance(out, torch.Tensor) else None
        ),
    )


def probe_is_slow(patch: Patch) -> None:
    patch.setattr(run, "PAIRS", observer.MANY)
    patch.setattr(run, "PAIRS_S", 60.0)
    enter = VisionProbe.__enter__

    def slow(self: VisionProbe) -> VisionProbe:
        time.sleep(LONG_S)
        return enter(self)

    patch.setattr(VisionProbe, "__enter__", slow)


def probe_stays(patch: Patch) -> None:
    patch.setattr(VisionProbe, "__exit__", lambda self, *_: None)


def ids_cut_by_the_prompts_length(patch: Patch) -> None:
    def cut(**fields: Any) -> Generation:
        length = fields["prompt_tokens"]
        return Generation(**{**fields, "token_ids": fields["token_ids"][length:]})

    patch.setattr(pipeline, "Generation", cut)


def key_forgets(name: str) -> Callable[[Patch], None]:
    def plant(patch: Patch) -> None:
        spec = Adapter.feature_spec
        patch.setattr(
            Adapter,
            "feature_spec",
            lambda self, prepared: replace(spec(self, prepared), **{name: ""}),
        )

    return plant


def key_looks_at_the_beginning_alone(patch: Patch) -> None:
    """The first kilobyte of each file, as one might do for speed."""
    digest = media._digest

    def hasty(kind: str, rule: str, found: Any) -> str:
        return digest(kind, rule, replace(found, content=[data[:1024] for data in found.content]))

    patch.setattr(media, "_digest", hasty)


def key_forgets_the_processors_settings(patch: Patch) -> None:
    init = Adapter.__init__

    def forgetful(self: Any, info: Any, model: Any, words: Any, processor: Any, notes: Any) -> None:
        init(self, info, model, words, processor, notes)
        self._processor = type(processor).__name__

    registry.unload(registry.entry("tiny-llava"))
    patch.setattr(Adapter, "__init__", forgetful)


def positions_off_by_one(patch: Patch) -> None:
    """Each step sees its token one place too far; the tokens may well be equal all the same."""

    def shifted(decoder: Any, token: torch.Tensor, kept: Any) -> torch.Tensor:
        place = torch.tensor([[kept.get_seq_length() + 1]])
        model = decoder.language_model
        out = model(input_ids=token, past_key_values=kept, position_ids=place, use_cache=True)
        return decoder.head(out.last_hidden_state[:, -1]).float()

    patch.setattr(decode, "step", shifted)


def features_kept_in_half_precision(patch: Patch) -> None:
    write = cache.FeatureCache.write
    patch.setattr(
        cache.FeatureCache,
        "write",
        lambda self, spec, rows, ms, cold: write(self, spec, rows.half().float(), ms, cold),
    )


def text_of_another_answer(patch: Patch) -> None:
    patch.setattr(
        pipeline, "Generation", lambda **fields: Generation(**{**fields, "text": "A red elephant."})
    )


def context_miscounted(patch: Patch) -> None:
    def without_pictures(**fields: Any) -> Generation:
        return Generation(**{**fields, "prompt_tokens": fields["prompt_tokens"] - 4})

    patch.setattr(pipeline, "Generation", without_pictures)


def token_times_made_up(patch: Patch) -> None:
    def smooth(**fields: Any) -> Generation:
        times = tuple(1000.0 + 10.0 * index for index in range(len(fields["token_ids"])))
        return Generation(**{**fields, "token_ms": times})

    patch.setattr(pipeline, "Generation", smooth)


def cached_time_embellished(patch: Patch) -> None:
    write = cache.FeatureCache.write
    patch.setattr(
        cache.FeatureCache,
        "write",
        lambda self, spec, rows, ms, cold: write(self, spec, rows, 10 * ms, cold),
    )


def weights_drift(patch: Patch) -> None:
    """By a way that torch does not count as a change."""
    leave = VisionProbe.__exit__
    head = registry.load(registry.entry("tiny-llava")).decoder.head

    def nudge(self: VisionProbe, *exc: object) -> None:
        leave(self, *exc)
        head.weight.data.mul_(1.001)

    patch.setattr(VisionProbe, "__exit__", nudge)


def key_remembers_the_question(patch: Patch) -> None:
    spec = Adapter.feature_spec

    def with_question(self: Adapter, prepared: Any) -> Any:
        return replace(spec(self, prepared), model=str(prepared.context_tokens))

    patch.setattr(Adapter, "feature_spec", with_question)


def key_remembers_the_file(patch: Patch) -> None:
    digest, count = media._digest, itertools.count()
    patch.setattr(media, "_digest", lambda *arguments: f"{digest(*arguments)}{next(count)}")


def features_ignored(patch: Patch) -> None:
    embed = PlaceholderAdapter.embed
    patch.setattr(
        PlaceholderAdapter,
        "embed",
        lambda self, prepared, rows: embed(self, prepared, torch.zeros_like(rows)),
    )


def sampled_comparison(patch: Patch) -> None:
    def draw(scores: torch.Tensor, *_: Any) -> int:
        return int(torch.multinomial(torch.softmax(scores / 10, dim=-1), 1))

    patch.setattr(decode, "choose", draw)


def another_seed(patch: Patch) -> None:
    seeded = pipeline.seeded
    patch.setattr(pipeline, "seeded", lambda seed, on: seeded(seed + 1, on))


def clock_jumps_back(patch: Patch) -> None:
    ticks = itertools.cycle((0.0, 5.0, 1.0))
    patch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))


def clock_runs_slow(patch: Patch) -> None:
    real = time.perf_counter
    patch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: real() / 10))
    slow = LlavaAdapter.encode

    def encode(self: Any, prepared: Any) -> torch.Tensor:
        time.sleep(LONG_S)
        return slow(self, prepared)

    patch.setattr(LlavaAdapter, "encode", encode)
    tower = registry.load(registry.entry("tiny-llava")).model.model.vision_tower
    tower.register_forward_pre_hook(lambda *_: time.sleep(LONG_S))


def work_between_the_stages(patch: Patch) -> None:
    load = pipeline._Run.load

    def late(self: Any) -> Any:
        found = load(self)
        time.sleep(LONG_S)
        return found

    patch.setattr(pipeline._Run, "load", late)


def checksum_not_looked_at(patch: Patch) -> None:
    """A changed byte in the middle is then a changed number."""
    unpack = cache._unpack

    def trusting(value: bytes, spec: Any) -> Any:
        data = value[cache.CHECKSUM :]
        return unpack(cache._checksum(data) + data, spec)

    patch.setattr(cache, "_unpack", trusting)


def pixels_shifted(patch: Patch) -> None:
    """All ways are shown the same wrong pixels."""
    made = Plain.pixels

    def shifted(self: Plain, *given: Any) -> Any:
        found = made(self, *given)
        return None if found is None else found.roll(1, -1)

    patch.setattr(Plain, "pixels", shifted)


def generate_raises(patch: Patch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("odd model")

    patch.setattr(LlavaAdapter, "generate", broken)


def prefix_of_another_order(patch: Patch) -> None:
    """Values stand at other places than their keys."""
    begin = Prefix.begin

    def turned(self: Prefix, config: Any) -> Any:
        layers = tuple((keys, values.flip(-2)) for keys, values in self.layers)
        return begin(replace(self, layers=layers), config)

    patch.setattr(Prefix, "begin", turned)


def prefix_one_token_too_long(patch: Patch) -> None:
    """The first word of the question before stays in it."""
    cut = prefixes.cut
    patch.setattr(
        prefixes, "cut", lambda past, tokens, took, cold: cut(past, tokens + 1, took, cold)
    )


def prefix_never_reused(patch: Patch) -> None:
    patch.setattr(Prefixes, "find", lambda self, name: None)


def prefix_written_to(patch: Patch) -> None:
    """The first run that goes on from it leaves its own question there."""
    begin = Prefix.begin

    def shared(self: Prefix, config: Any) -> Any:
        past = begin(self, config)
        for layer, (keys, values) in zip(past.layers, self.layers, strict=True):
            layer.keys, layer.values = keys, values
            values[..., -3:, :] = 0
        return past

    patch.setattr(Prefix, "begin", shared)


def prefix_key_forgets_the_features(patch: Patch) -> None:
    patch.setattr(prefixes, "key", lambda adapter, prepared: "the same for all")


SINS: dict[str, tuple[str, Callable[[Patch], None], set[str]]] = {
    "adaptor applied twice": ("eventgpt", adaptor_applied_twice, {"equal_decoupled"}),
    "adaptor twice in the model": (
        "eventgpt",
        adaptor_twice_in_the_model_itself,
        {"encoded_once"},
    ),
    "one event image": (
        "eventgpt",
        one_event_image_instead_of_five,
        {"equal_decoupled", "equal_features", "encoded_once"},
    ),
    "encodes again": ("llava", encodes_again, {"encoded_once"}),
    "probe overwrites": ("llava", probe_overwrites, {"stage3"}),
    "probe changes what it sees": ("eventgpt", probe_changes_what_it_sees, {"equal_hooked"}),
    "probe is slow": ("llava", probe_is_slow, {"observer"}),
    "probe stays": ("llava", probe_stays, {"left_as_found"}),
    "ids cut by the prompt's length": (
        "llava",
        ids_cut_by_the_prompts_length,
        {"counted", "equal_hooked", "equal_decoupled"},
    ),
    "key forgets the dtype": ("llava", key_forgets("dtype"), {"keys"}),
    "key forgets the checkpoint": ("llava", key_forgets("checkpoint"), {"keys"}),
    "key forgets the media": ("eventgpt", key_forgets("media"), {"keys"}),
    "key looks at the beginning": ("llava", key_looks_at_the_beginning_alone, {"keys"}),
    "key forgets settings": ("llava", key_forgets_the_processors_settings, {"keys"}),
    "key forgets the device": ("llava", key_forgets("device"), {"keys"}),
    "key forgets the code": ("llava", key_forgets("code"), {"keys"}),
    "positions off by one": ("llava", positions_off_by_one, {"equal_decoupled"}),
    "features in half precision": ("llava", features_kept_in_half_precision, {"equal_decoupled"}),
    "text of another answer": ("llava", text_of_another_answer, {"counted"}),
    "context miscounted": ("llava", context_miscounted, {"counted"}),
    "token times made up": ("llava", token_times_made_up, {"clock"}),
    "cached time embellished": ("llava", cached_time_embellished, {"accounted"}),
    "weights drift": ("llava", weights_drift, {"left_as_found"}),
    "key remembers the question": ("llava", key_remembers_the_question, {"keys"}),
    "key remembers the file": ("llava", key_remembers_the_file, {"keys"}),
    "features ignored": ("llava", features_ignored, {"sight", "equal_decoupled"}),
    "sampled comparison": ("llava", sampled_comparison, {"greedy"}),
    "another seed": ("llava", another_seed, {"equal_sampled"}),
    "clock jumps back": ("llava", clock_jumps_back, {"clock"}),
    "clock runs slow": ("llava", clock_runs_slow, {"clock"}),
    "work between the stages": ("llava", work_between_the_stages, {"accounted"}),
    "checksum not looked at": ("llava", checksum_not_looked_at, {"damage"}),
    "pixels shifted": ("llava", pixels_shifted, {"pixels"}),
    "generate raises": ("llava", generate_raises, {"answer"}),
    "prefix of another order": ("llava", prefix_of_another_order, {"equal_prefix"}),
    "prefix a token too long": ("eventgpt", prefix_one_token_too_long, {"equal_prefix", "counted"}),
    "prefix never reused": ("llava", prefix_never_reused, {"equal_prefix"}),
    "prefix written to": ("video_llava", prefix_written_to, {"equal_prefix"}),
    "prefix key forgets": ("llava", prefix_key_forgets_the_features, {"keys"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SINS)
def test_a_planted_sin_fails_its_check(
    name: str, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    family, plant, expected = SINS[name]
    plant(monkeypatch)
    runs = stages.ENOUGH if expected & TIMED else 1
    outcomes = {check: verdict.outcome for check, verdict in verify(family, runs).items()}
    failed = {check for check, outcome in outcomes.items() if outcome == "failed"}
    assert expected <= failed, outcomes


def test_every_check_is_tripped_by_a_sin() -> None:
    assert set().union(*(expected for _, _, expected in SINS.values())) == set(CHECKS)


@pytest.mark.parametrize(
    "family", [FAMILIES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in FAMILIES[1:])]
)
def test_a_clean_model_fails_no_check(family: str, verify: Verify) -> None:
    found = verify(family)
    assert set(found) == set(CHECKS)
    failed = {check: v.sentence for check, v in found.items() if v.outcome == "failed"}
    assert not set(failed) - UNSTEADY, failed
