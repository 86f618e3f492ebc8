"""A server is proved with the local checkpoint, or what it does otherwise is found and named."""

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList

from engine.media import dataset
from engine.models import registry
from engine.models.adapter import Adapter
from engine.models.checkpoint import Server
from engine.served import protocol
from engine.types import MediaKind
from engine.verify import hypotheses, runner, served
from engine.verify.verdict import SERVED, Verdict, VerifyRequest, verified
from tests.conftest import slow_unless
from tests.served.fake_server import FakeServer, says, serving
from tests.served.model_server import (
    FAULTS,
    Fault,
    ModelServer,
    compressed,
    exchanged,
    model_serving,
)
from tests.verify.conftest import Notes

pytestmark = pytest.mark.loads
SAMPLES = 3
TOKENS = 48  # the first 40 of the demo's answers are enough to differ
ONE: dict[str, Any] = {"first": 2, "number": 1, "tokens": 16}  # its answers differ sooner
Prove = Callable[..., dict[str, Verdict]]


@pytest.fixture(scope="module")
def adapter() -> Iterator[Adapter]:
    yield registry.load(registry.entry("llava-demo"))
    registry.unload(registry.entry("llava-demo"))


@pytest.fixture
def prove(demo_scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prove:
    """check -> verdict of a server, on some demo scenes."""
    monkeypatch.setenv("STAGESCOPE_CACHE_DIR", str(tmp_path / "cache"))
    own = registry.entry

    def proved(
        server: FakeServer,
        weights: str = "llava-demo",
        number: int = SAMPLES,
        first: int = 0,
        shows: MediaKind | None = None,
        pairs: int = 2,
        clip: bool = False,
        tokens: int = TOKENS,
        only: Sequence[str] = tuple(SERVED),
    ) -> dict[str, Verdict]:
        monkeypatch.setattr(served, "PAIRS", pairs)
        monkeypatch.setattr(served, "SERVED", only)
        there = Server(server.url, "served-model", timeout_s=20.0, clip=clip, weights=weights)
        base = own("video-llava-demo" if "video" in weights else "llava-demo")
        kind = shows or base.kind
        entry = replace(base, name="served", server=there, demo=False, kind=kind)
        gone = replace(own("llava-demo"), name="gone", folder=tmp_path / "gone")
        entries = {"served": entry, "gone": gone}
        monkeypatch.setattr(registry, "entry", lambda name: entries.get(name) or own(name))
        samples = tuple(dataset.read(demo_scenes).samples[first : first + number])
        request = VerifyRequest(("served",), samples, max_new_tokens=tokens)
        (examined,) = runner.verify(request, Notes())
        monkeypatch.setattr(registry, "entry", own)
        return {verdict.check: verdict for verdict in examined.verdicts}

    return proved


@pytest.mark.parametrize("tokens", slow_unless([16], [16, TOKENS]))
def test_a_clean_server_is_the_model_it_says(tokens: int, adapter: Adapter, prove: Prove) -> None:
    with model_serving(adapter) as server:
        found = prove(server, tokens=tokens)
    assert set(found) == set(SERVED)
    said = {check: verdict.sentence for check, verdict in found.items() if not verdict.passed}
    assert not set(said) - {"steady"}, said
    assert verified(found.values(), "served")
    assert "3 of 3 answers" in found["same"].sentence


def test_what_explains_the_answers_is_named(
    adapter: Adapter, prove: Prove, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fault and a few hypotheses; all of them below."""
    few = [one for one in hypotheses.CHANGES if one.place in ("class", "bos")]
    monkeypatch.setattr(hypotheses, "CHANGES", tuple(few))
    with model_serving(adapter, FAULTS["class last"][0]) as server:
        found = prove(server, **ONE, only=("same", "why"))
    assert found["same"].outcome == "failed"
    assert "with the class embedding after the patches: 1 of 1" in found["why"].sentence


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught_and_named(name: str, adapter: Adapter, prove: Prove) -> None:
    fault, check, words = FAULTS[name]
    with model_serving(adapter, fault) as server:
        found = prove(server, pairs=8 if check == "steady" else 2)
    said = {one: (verdict.outcome, verdict.sentence) for one, verdict in found.items()}
    assert not found[check].passed and words in found[check].sentence, said
    if check == "why":
        assert found["same"].outcome == "failed"
    if check not in ("arrivals", "saw", "steady"):
        assert not verified(found.values(), "served")


@pytest.mark.slow
def test_a_picture_that_was_compressed_is_named_where_it_changes_an_answer(
    adapter: Adapter, prove: Prove
) -> None:
    with model_serving(adapter, Fault(picture=compressed)) as server:
        found = prove(server, number=1, first=10)
    assert "pictures as JPEG of quality 75" in found["why"].sentence


@pytest.mark.slow
def test_numbers_of_16_bits_are_named_where_they_change_an_answer(prove: Prove) -> None:
    half = registry.load(registry.entry("llava-demo@bfloat16"))
    with model_serving(half) as server:
        said = prove(server, number=2, first=4)["why"].sentence
    registry.unload(registry.entry("llava-demo@bfloat16"))
    assert "with numbers in bfloat16: 2 of 2; as published: 0 of 2" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"temperature": 1.0, "top_k": 0}, "draws at temperature 1.0"),
        ({"temperature": 0.8, "top_k": 40}, "draws at temperature 0.8 from 40 tokens"),
        ({"temperature": 3.0, "top_k": 0}, "Not explained"),
    ],
)
def test_draws_are_named_by_their_likelihood(
    settings: dict[str, float], words: str, adapter: Adapter, prove: Prove
) -> None:
    fault = Fault(generation={"do_sample": True, **settings})
    with model_serving(adapter, fault) as server:
        said = prove(server)["why"].sentence
    assert words in said, said


@pytest.mark.slow
def test_two_hypotheses_that_both_fit_are_both_named(
    adapter: Adapter, prove: Prove, monkeypatch: pytest.MonkeyPatch
) -> None:
    (swap,) = (one for one in hypotheses.CHANGES if one.words == "red and blue exchanged")
    twin = swap._replace(words="channels in another order")
    monkeypatch.setattr(hypotheses, "CHANGES", (*hypotheses.CHANGES, twin))
    with model_serving(adapter, Fault(picture=exchanged)) as server:
        said = prove(server)["why"].sentence
    assert "with red and blue exchanged or with channels in another order: 3 of 3" in said


class Nudge(LogitsProcessor):  # type: ignore[misc]
    """Makes the second best token at a place the best, by a hundredth of a nat."""

    def __init__(self, place: int) -> None:
        self.place, self.begin, self.last = place, 0, 0

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        size = ids.shape[1]
        self.begin = self.begin if size == self.last + 1 else size  # of another request
        self.last = size
        if size - self.begin == self.place:
            best = scores[0].topk(2)
            scores[0, best.indices[1]] = best.values[0] + 0.01
        return scores


@pytest.mark.parametrize("sixteen", [False, True])
def test_a_tie_by_the_servers_own_word_is_none_unless_the_local_model_agrees(
    sixteen: bool, adapter: Adapter, prove: Prove, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log-probabilities are a hundredth apart; the local ones as far as these 16 bits allow."""
    if sixteen:
        monkeypatch.setattr(hypotheses, "MARGIN", 20.0)
    fault = Fault(generation={"logits_processor": LogitsProcessorList([Nudge(3)])})
    with model_serving(adapter, fault, kind="vllm") as server:
        said = prove(server, **ONE, only=("same",))["same"]
    assert said.evidence["samples"][0]["position"] == 3
    assert said.evidence["samples"][0]["server_gap"] == pytest.approx(0.01, abs=1e-3)
    assert said.outcome == ("tie" if sixteen else "failed")
    assert sixteen or "; there by 0.01, as it says." in said.sentence


@pytest.mark.parametrize("nats", [float("nan"), "x", None])
def test_log_probabilities_that_are_none_are_not_told(
    nats: object, adapter: Adapter, prove: Prove, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ModelServer.scored

    def odd(server: ModelServer, body: dict[str, Any]) -> dict[str, Any]:
        found = own(server, body)
        for one in found["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
            one["logprob"] = nats
        return found

    monkeypatch.setattr(ModelServer, "scored", odd)
    fault = Fault(generation={"logits_processor": LogitsProcessorList([Nudge(0)])})
    with model_serving(adapter, fault, kind="vllm") as server:
        said = prove(server, **ONE, only=("same",))["same"]
    assert said.outcome == "failed" and said.evidence["samples"][0]["server_gap"] is None


@pytest.mark.slow
def test_without_weights_a_server_is_not_proved(prove: Prove, adapter: Adapter) -> None:
    with model_serving(adapter) as server:
        found = prove(server, weights="", number=2)
    assert found["same"].outcome == "unresolved" and "weights" in found["same"].sentence
    assert found["repeats"].passed and not verified(found.values(), "served")


@pytest.mark.slow
def test_vision_time_is_inferred_where_a_known_picture_is_not_encoded_again(
    adapter: Adapter, prove: Prove
) -> None:
    with model_serving(adapter, Fault(encodes_s=0.2, most=2), kind="vllm") as server:
        found = prove(server, number=1, pairs=served.PAIRS, only=("steady",))["steady"]
    assert "inferred" in found.sentence
    assert 150 < found.evidence["inferred"]["vision_ms"]["median"] < 300


@pytest.mark.parametrize(("second_ms", "inferred"), [(30.0, True), (80.0, False), (91.0, False)])
def test_vision_time_is_what_a_known_picture_saves_more_than_a_new_one(
    second_ms: float,
    inferred: bool,
    adapter: Adapter,
    prove: Prove,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second request of two is 10 ms quicker in any case."""
    hiccups = count()

    def pair(_: object, fresh: bool) -> tuple[float, float]:
        late = 60.0 * (next(hiccups) % 8 == 3)
        return (100.0, 90.0) if fresh else (100.0, second_ms + late)

    monkeypatch.setattr(served.ServerChecks, "_pair", pair)
    with model_serving(adapter, kind="vllm") as server:
        found = prove(server, number=1, pairs=served.PAIRS, only=("steady",))["steady"]
    assert ("about 60 ms (60 to 60, inferred)" in found.sentence) == inferred


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pictures", "words"),
    [
        (lambda every: every[::-1], "the frames reversed"),
        (lambda every: every[:-1], "the last frame missing"),
        (lambda every: every[:1], "only the first frame"),
    ],
)
def test_frames_that_a_server_takes_otherwise_are_named(
    pictures: Callable[[list[object]], list[object]], words: str, prove: Prove
) -> None:
    video = registry.load(registry.entry("video-llava-demo"))
    with model_serving(video, Fault(pictures=pictures)) as server:
        found = prove(server, weights="video-llava-demo", number=2)
    assert words in found["why"].sentence, found["why"].sentence
    registry.unload(registry.entry("video-llava-demo"))


def test_a_server_that_is_away_fails_one_check_with_a_sentence(prove: Prove) -> None:
    with serving() as server:
        server.answer = says(500, {"error": "out of memory"})
        found = prove(server)
    assert list(found) == ["reached"]
    assert "out of memory" in found["reached"].sentence


RENDERED: list[tuple[Fault, bool, str]] = [
    # what the server makes of a request, whether its pixels are told, and the fault that it shows
    (Fault(), True, ""),
    (Fault(rendered=lambda ids: [*ids, 7]), True, "of the prompt that it renders differs"),
    (Fault(picture=exchanged), True, "other pixels"),
    (Fault(features=lambda every: [None, 3, "x"]), False, ""),
    (Fault(picture=compressed), True, "other pixels"),
    (Fault(features=lambda every: every * 2), False, "other pixels"),
    (Fault(features=lambda every: [base64.b64encode(b"\x91" * 5000).decode()]), False, ""),
    (Fault(features=lambda every: {"a": every}), False, ""),
    (Fault(features=lambda every: []), False, ""),
]


@pytest.mark.parametrize(("fault", "told", "words"), slow_unless(RENDERED[:4], RENDERED))
def test_the_ids_and_pixels_that_a_server_renders_are_compared(
    fault: Fault, told: bool, words: str, adapter: Adapter, prove: Prove
) -> None:
    with model_serving(adapter, fault, kind="vllm") as server:
        found = prove(server, **ONE, only=("saw",))["saw"]
    assert words in found.sentence and found.passed == (not words)
    assert found.evidence["rendered"][-1] == (7 if "prompt" in words else 31)
    assert (found.evidence.get("pixels_apart") is not None) == told


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weights": "gone"}, "Its weights cannot be used: gone is not on this machine"),
        ({"clip": True}, "chooses the frames itself, so nothing can be compared: leave clip out"),
    ],
)
def test_what_cannot_be_compared_is_said_and_nothing_is_accused(
    changes: dict[str, Any], words: str, adapter: Adapter, prove: Prove
) -> None:
    with model_serving(adapter) as server:
        found = prove(server, **ONE, **changes)
    assert [one.outcome for one in found.values()] == ["skipped"]
    assert words in found["reached"].sentence and (not server.asked or "clip" not in changes)


@pytest.mark.parametrize(("own", "step"), [(-1, 1), (1, -1), (5, 1), (-6, -1)])
def test_a_layer_that_the_tower_lacks_is_no_hypothesis(own: int, step: int) -> None:
    config = SimpleNamespace(vision_feature_layer=own)
    config.vision_config = SimpleNamespace(num_hidden_layers=5)
    adapter = SimpleNamespace(model=SimpleNamespace(config=config))
    trial: Any = SimpleNamespace(adapter=adapter, hooks=ExitStack())
    with pytest.raises(hypotheses.Inapplicable):
        hypotheses._layer(step, trial)
    config.vision_feature_layer = own - 2 * step or own - step  # the control: one that it has
    hypotheses._layer(step, trial)


def test_an_answer_far_longer_than_asked_is_not_compared(
    adapter: Adapter, prove: Prove, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "MOST_CHARACTERS", 1)
    with model_serving(adapter) as server:
        found = prove(server, **ONE)
    assert "its answer is not compared" in found["reached"].sentence


@pytest.mark.slow
def test_the_local_model_is_shown_what_the_server_is_shown(adapter: Adapter, prove: Prove) -> None:
    with model_serving(adapter) as server:
        found = prove(server, number=1, shows="video")
    assert found["same"].passed, found["same"].sentence


def test_a_clock_that_notes_arrivals_late_is_found(
    adapter: Adapter, prove: Prove, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = protocol.Reply.now
    monkeypatch.setattr(protocol.Reply, "now", lambda reply: own(reply) + 50.0)
    with model_serving(adapter) as server:
        found = prove(server, **ONE, only=("arrivals",))
    assert found["arrivals"].outcome == "failed"
    assert "from the moment at which it was sent on" in found["arrivals"].sentence
