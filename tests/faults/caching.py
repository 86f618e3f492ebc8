"""Faults of the feature cache and its keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine import media
from engine.models.adapter import Adapter
from engine.pipeline import feature_cache
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


CACHE = "pipeline/test_feature_cache"
KEYS = f"{CACHE} pipeline/test_cache_keys pipeline/test_single_run"
FAULTS = (
    *(fault(f"key forgets the {name}", "llava", "", key_forgets(name), KEYS,
            f"The features' key does not depend on the {name}.", "cache")
      for name in ("dtype", "checkpoint", "media", "device", "code")),
    fault("key looks at the beginning", "llava", "", key_looks_at_the_beginning_alone,
          f"media/test_load pipeline/test_cache_keys {CACHE}",
          "The key takes the first kilobyte of a file.", "cache"),
    fault("key forgets settings", "llava", "", key_forgets_the_processors_settings, KEYS,
          "The key does not depend on the image processor's settings.", "cache"),
    fault("features in half precision", "llava", "equal_decoupled",
          features_kept_in_half_precision, KEYS, "Features are rounded to float16 on disk.",
          "cache"),
    fault("cached time embellished", "llava", "", cached_time_embellished, KEYS,
          "A cached stage says that it took ten times as long.", "cache"),
    fault("key remembers the question", "llava", "", key_remembers_the_question, KEYS,
          "The key changes with the question, so nothing is found again.", "cache"),
    fault("key remembers the file", "llava", "", key_remembers_the_file, KEYS,
          "The key changes with each reading of a file.", "cache"),
    fault("checksum not looked at", "llava", "", checksum_not_looked_at, CACHE,
          "A damaged value of the cache is used.", "cache"),
)  # fmt: skip
