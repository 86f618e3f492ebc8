"""Faults of the feature cache, its keys, and of reused prefixes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine import media
from engine.models.adapter import Adapter
from engine.pipeline import feature_cache, prefix_cache
from engine.pipeline.prefix_cache import Prefix, Prefixes
from tests.faults.fault import Patch, fault


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
    patch.setattr(Adapter, "processor_digest", lambda self: type(self.image_processor).__name__)


def features_kept_in_half_precision(patch: Patch) -> None:
    write = feature_cache.FeatureCache.write
    patch.setattr(
        feature_cache.FeatureCache,
        "write",
        lambda self, spec, features, ms, cold: write(
            self, spec, features.changed(lambda one: one.half().float()), ms, cold
        ),
    )


def cached_time_embellished(patch: Patch) -> None:
    write = feature_cache.FeatureCache.write
    patch.setattr(
        feature_cache.FeatureCache,
        "write",
        lambda self, spec, features, ms, cold: write(self, spec, features, 10 * ms, cold),
    )


def key_remembers_the_question(patch: Patch) -> None:
    spec = Adapter.feature_spec

    def with_question(self: Adapter, prepared: Any) -> Any:
        return replace(spec(self, prepared), model=str(prepared.context_tokens))

    patch.setattr(Adapter, "feature_spec", with_question)


def key_remembers_the_file(patch: Patch) -> None:
    digest, count = media._digest, itertools.count()
    patch.setattr(media, "_digest", lambda *given: f"{digest(*given)}{next(count)}")


def checksum_not_looked_at(patch: Patch) -> None:
    """A changed byte of a tensor is then a changed number."""
    unpack = feature_cache._unpack

    def trusting(value: bytes, spec: Any) -> Any:
        data = value[feature_cache.CHECKSUM :]
        return unpack(feature_cache._checksum(data) + data, spec)

    patch.setattr(feature_cache, "_unpack", trusting)


def prefix_of_another_order(patch: Patch) -> None:
    begin = Prefix.begin

    def turned(self: Prefix, config: Any) -> Any:
        layers = tuple((keys, values.flip(-2)) for keys, values in self.layers)
        return begin(replace(self, layers=layers), config)

    patch.setattr(Prefix, "begin", turned)


def prefix_one_token_too_long(patch: Patch) -> None:
    cut = prefix_cache.cut
    patch.setattr(
        prefix_cache, "cut", lambda past, tokens, took, cold: cut(past, tokens + 1, took, cold)
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
    patch.setattr(prefix_cache, "key", lambda adapter, prepared: "the same for all")


CACHE = "pipeline/test_feature_cache"
KEYS = f"{CACHE} pipeline/test_single_run"
PREFIX = "pipeline/test_prefix_cache pipeline/test_prefix_reuse"
FAULTS = (
    *(fault(f"key forgets the {name}", "llava", "keys", key_forgets(name), KEYS,
            f"The features' key does not depend on the {name}.", "cache")
      for name in ("dtype", "checkpoint", "media", "device", "code")),
    fault("key looks at the beginning", "llava", "keys", key_looks_at_the_beginning_alone,
          f"media/test_load {CACHE}", "The key takes the first kilobyte of a file.", "cache"),
    fault("key forgets settings", "llava", "keys", key_forgets_the_processors_settings, KEYS,
          "The key does not depend on the image processor's settings.", "cache"),
    fault("features in half precision", "llava", "equal_decoupled",
          features_kept_in_half_precision, KEYS, "Features are rounded to float16 on disk.",
          "cache"),
    fault("cached time embellished", "llava", "accounted", cached_time_embellished, KEYS,
          "A cached stage says that it took ten times as long.", "cache"),
    fault("key remembers the question", "llava", "keys", key_remembers_the_question, KEYS,
          "The key changes with the question, so nothing is found again.", "cache"),
    fault("key remembers the file", "llava", "keys", key_remembers_the_file, KEYS,
          "The key changes with each reading of a file.", "cache"),
    fault("checksum not looked at", "llava", "damage", checksum_not_looked_at, CACHE,
          "A damaged value of the cache is used.", "cache"),
    fault("prefix of another order", "llava", "equal_prefix", prefix_of_another_order, PREFIX,
          "A prefix's values stand at other places than its keys.", "prefix"),
    fault("prefix a token too long", "eventgpt", "equal_prefix counted", prefix_one_token_too_long,
          PREFIX, "A kept prefix holds the first word of another question.", "prefix"),
    fault("prefix never reused", "llava", "equal_prefix", prefix_never_reused, PREFIX,
          "No prefix is ever found.", "prefix"),
    fault("prefix written to", "video_llava", "equal_prefix", prefix_written_to, PREFIX,
          "A run writes into the kept prefix.", "prefix"),
    fault("prefix key forgets", "llava", "keys", prefix_key_forgets_the_features, PREFIX,
          "All prefixes have one key.", "prefix"),
)  # fmt: skip
