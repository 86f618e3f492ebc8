"""Forced log-probabilities are those of the model's own generate(), alone and in a batch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import media
from engine.decoding import batched
from engine.models import registry
from engine.models.adapter import Adapter
from engine.types import Features, Prepared
from engine.verify.answer_paths import RecordedAnswer, Subject
from engine.verify.verdict import VerifyRequest
from tests.conftest import make_sample

pytestmark = pytest.mark.loads
TINY = ("tiny-eventgpt", "tiny-video_llava", "tiny-llava")
DEMO = ("eventgpt-demo", "video-llava-demo", "llava-demo", "qwen2.5-vl-demo")
TOKENS = 20
CLOSE = 5e-5  # nats per token, in float32; the controls are off by far more


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


@pytest.fixture(params=(*TINY, *DEMO))
def adapter(
    request: pytest.FixtureRequest,
    tiny_folder: Path,
    cache_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Adapter:
    if request.param in TINY:
        monkeypatch.setenv("STAGESCOPE_MODELS", str(tiny_folder / "models.toml"))
    return registry.load(registry.entry(request.param))


@pytest.fixture
def plain(adapter: Adapter, tmp_path: Path) -> tuple[Prepared, RecordedAnswer]:
    """The model's own generate() on a sample, with the logits of its head."""
    sample = make_sample(tmp_path / "sample")
    request = VerifyRequest((adapter.info.name,), (sample,), max_new_tokens=TOKENS, runs=1)
    subject = Subject(adapter, sample, request, tmp_path / "features", lambda: False)
    found = subject.plain(subject.greedy)
    return subject.prepared, found


def own(answer: RecordedAnswer) -> torch.Tensor:
    """[N]: the log-probabilities of the answer's ids, from the logits of generate()."""
    logs = torch.log_softmax(answer.logits.float(), dim=-1)
    return logs[range(len(answer.ids)), list(answer.ids)]


def logprobs(adapter: Adapter, prompts: list[Any], ids: list[int]) -> torch.Tensor:
    """[B, N]: the log-probabilities of N tokens after each of B prompts."""
    return batched.forced_logprobs(adapter.decoder, prompts, ids, torch.tensor(ids)[:, None])[
        ..., 0
    ]


def of(adapter: Adapter, prepared: Prepared, features: Features, ids: list[int]) -> torch.Tensor:
    return logprobs(adapter, [adapter.embed(prepared, features)], ids)[0]


def test_forced_tokens_have_the_models_own_log_probabilities(
    adapter: Adapter, plain: tuple[Prepared, RecordedAnswer]
) -> None:
    prepared, answer = plain
    features, ids = adapter.encode(prepared), list(answer.ids)
    assert len(ids) > 2
    found = of(adapter, prepared, features, ids)
    assert float((found - own(answer)).abs().max()) < CLOSE
    assert float((of(adapter, prepared, features, ids[:1]) - own(answer)[:1]).abs()) < CLOSE

    # Controls: another picture, other ids, and a shift by one token are seen.
    blind = features.changed(torch.zeros_like)
    assert float((of(adapter, prepared, blind, ids) - own(answer)).abs().max()) > 100 * CLOSE
    assert float((found[1:] - own(answer)[:-1]).abs().max()) > 100 * CLOSE
    other = of(adapter, prepared, features, [ids[1], *ids[1:]])
    assert float((other - own(answer)).abs().max()) > 100 * CLOSE


def test_a_batch_gives_each_input_what_it_has_alone(adapter: Adapter, tmp_path: Path) -> None:
    questions = ("What is it?", "What are the key elements in this scene?")
    prepared = [
        adapter.preprocess(media.load(make_sample(tmp_path / str(n), 20 * n), adapter.kind), one)
        for n, one in enumerate((*questions, questions[0]))
    ]
    features = [adapter.encode(one) for one in prepared]
    ids = [7, 9, 11, 8]
    prompts = [adapter.embed(*pair) for pair in zip(prepared, features, strict=True)]
    together = logprobs(adapter, prompts, ids)
    alone = torch.stack([of(adapter, *pair, ids) for pair in zip(prepared, features, strict=True)])
    assert float((together - alone).abs().max()) < CLOSE
    assert float((together[0] - together[2]).abs().max()) > 100 * CLOSE  # the control
