"""Faults of the feature cache and its keys."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine import media
from engine.models.adapter import Adapter
from engine.pipeline import feature_cache
from tests.faults.fault import Patch, fault, replaces


def key_forgets(name: str) -> Callable[[Patch], None]:
    return replaces(Adapter, "feature_spec")(
        lambda spec, self, prepared: replace(spec(self, prepared), **{name: ""})
    )


@replaces(media, "_digest")
def key_looks_at_the_beginning_alone(digest: Any, kind: str, rule: str, found: Any) -> str:
    """The first kilobyte of each file, as one might do for speed."""
    return digest(kind, rule, replace(found, content=[data[:1024] for data in found.content]))


def key_forgets_the_processors_settings(patch: Patch) -> None:
    patch.setattr(Adapter, "processor_digest", lambda self: type(self.image_processor).__name__)


@replaces(feature_cache.FeatureCache, "write")
def features_kept_in_half_precision(
    write: Any, self: Any, spec: Any, features: Any, *more: Any, **named: Any
) -> None:
    write(self, spec, features.changed(lambda one: one.half().float()), *more, **named)


@replaces(feature_cache.FeatureCache, "write")
def cached_time_embellished(
    write: Any, self: Any, spec: Any, features: Any, ms: float, *more: Any, **named: Any
) -> None:
    write(self, spec, features, 10 * ms, *more, **named)


@replaces(Adapter, "feature_spec")
def key_remembers_the_question(spec: Any, self: Adapter, prepared: Any) -> Any:
    return replace(spec(self, prepared), model=str(prepared.context_tokens))


def key_remembers_the_file(patch: Patch) -> None:
    digest, count = media._digest, itertools.count()
    patch.setattr(media, "_digest", lambda *given: f"{digest(*given)}{next(count)}")


@replaces(feature_cache, "_unpack")
def checksum_not_looked_at(unpack: Any, value: bytes, spec: Any) -> Any:
    """A changed byte of a tensor is then a changed number."""
    data = value[feature_cache.CHECKSUM :]
    return unpack(feature_cache._checksum(data) + data, spec)


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
