"""New tokens beyond a model's context: the limit is lowered, with a note; the answer stays the
model's own, and both limits are kept."""

from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
import torch
from transformers import GenerationConfig

from engine import media
from engine.decoding import compiled
from engine.errors import ContextTooLong
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import Watcher, batch_run, draft_loop, single_run
from engine.pipeline.drafts import LOOKUP, DraftRequest
from engine.types import DecodeConfig, RunOptions, RunRequest, RunResult, Sample
from engine.verify.answer_paths import Subject
from engine.verify.verdict import VerifyRequest

pytestmark = pytest.mark.loads

ROOM, ASKED = 9, 300
QUESTION, LONGER = "Why?", "Why??"
FAMILIES = ("eventgpt", "video_llava", "llava")
Load = Callable[..., Adapter]


@pytest.fixture
def load(tiny_models: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> Load:
    """A tiny model that has room for `room` tokens after QUESTION, and whose answers do not end."""

    def loaded(family: str, room: int = ROOM) -> Adapter:
        adapter = registry.load(registry.entry(f"tiny-{family}"))
        monkeypatch.setattr(adapter, "eos_ids", _unsaid(adapter, sample))
        context = _prompt(adapter, sample) + room
        monkeypatch.setattr(adapter.text_config, "max_position_embeddings", context)
        return adapter

    return loaded


def _prompt(adapter: Adapter, sample: Sample) -> int:
    return adapter.preprocess(media.load(sample, adapter.kind), QUESTION).context_tokens


def _unsaid(adapter: Adapter, sample: Sample) -> tuple[int]:
    """An end token that no answer holds, whatever this CPU's rounding makes of them."""
    said = [plain(adapter, sample, 30, asked, (10**6,)) for asked in (QUESTION, LONGER)]
    return (next(token for token in range(1, 100) if token not in chain(*said)),)


def go(adapter: Adapter, sample: Sample, question: str = QUESTION, **options: object) -> RunResult:
    chosen = {"decode": DecodeConfig(ASKED), "cache": "off", **options}
    request = RunRequest(sample, adapter.info.name, question, RunOptions(**chosen))
    return single_run.run(adapter, request, None)


@torch.inference_mode()
def plain(
    adapter: Adapter,
    sample: Sample,
    tokens: int,
    question: str = QUESTION,
    ends: tuple[int, ...] = (),
) -> list[int]:
    """The model's own greedy generate() with this limit."""
    prepared = adapter.preprocess(media.load(sample, adapter.kind), question)
    ids = {"eos_token_id": [*(ends or adapter.eos_ids)], "pad_token_id": 1}
    config = GenerationConfig(max_new_tokens=tokens, do_sample=False, **ids)
    out: list[int] = adapter.generate(prepared, generation_config=config)[0].tolist()
    return out[-tokens:]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("way", ["eager", "compiled", "hooked"])
def test_the_answer_is_plains_with_the_lower_limit(
    way: str,
    family: str,
    load: Load,
    sample: Sample,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiled, "_compile", lambda step, device: step)
    adapter = load(family)
    mode = "hooked" if way == "hooked" else "decoupled"
    backend = "compiled" if way == "compiled" else "eager"
    result = go(adapter, sample, mode=mode, decode=DecodeConfig(ASKED, backend=backend))
    assert list(result.generation.token_ids) == plain(adapter, sample, ROOM)
    assert result.generation.stop == "length" and result.new_tokens == ROOM
    assert result.generation.prompt_tokens + ROOM == adapter.context_limit
    assert result.backend == ("generate" if mode == "hooked" else backend)


def test_a_prompt_without_room_and_a_forced_length_are_refused(load: Load, sample: Sample) -> None:
    adapter = load("llava")
    with pytest.raises(ContextTooLong, match=r"needs 10 new ones: force at most 9\."):
        go(adapter, sample, decode=DecodeConfig(ROOM + 1, min_new_tokens=ROOM + 1))
    adapter = load("llava", room=0)
    with pytest.raises(ContextTooLong, match=r"this prompt has \d+: shorten the question\."):
        go(adapter, sample)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_row_of_a_batch_has_its_own_limit(family: str, load: Load, sample: Sample) -> None:
    adapter = load(family)
    single = [go(adapter, sample, question) for question in (QUESTION, LONGER)]
    found = batch_run.run(adapter, [alone.request for alone in single], None)
    for together, alone in zip(found, single, strict=True):
        assert isinstance(together, RunResult)
        assert together.generation.token_ids == alone.generation.token_ids
        assert together.token_limit == alone.token_limit == together.new_tokens
        assert [n for n in together.notes if "instead of" in n] == list(alone.notes)
    assert single[0].new_tokens == ROOM > single[1].new_tokens > 0


def test_a_draft_and_its_target_share_the_lower_limit(load: Load, sample: Sample) -> None:
    target, draft = load("video_llava", 30), load("llava", ROOM)
    request = DraftRequest(
        (sample,), "target", LOOKUP, prompt=QUESTION, decode=DecodeConfig(ASKED), runs=1
    )
    for other, tokens in ((None, 30), (draft, ROOM)):
        trial = draft_loop.try_sample(sample, request, target, other, Watcher())
        assert len(trial.ids) == tokens and trial.difference is None
        assert list(trial.ids) == plain(target, sample, tokens)
        (note,) = trial.notes
        assert f"limit of new tokens is {tokens} instead of 300" in note


def test_verify_compares_at_the_lower_limit(load: Load, sample: Sample, tmp_path: Path) -> None:
    adapter = load("llava", 20)
    request = VerifyRequest((adapter.info.name,), (sample,), QUESTION, max_new_tokens=ASKED)
    subject = Subject(adapter, sample, request, tmp_path, lambda: False)
    answers = [
        getattr(subject, way)(subject.greedy).ids for way in ("plain", "hooked", "decoupled")
    ]
    assert len(answers[0]) == 20 and answers[0] == answers[1] == answers[2]
    assert "is 20 instead of 300" in subject.notes[0]
    load("llava", 15)  # fewer than some checks need
    with pytest.raises(ContextTooLong, match="force at most 15"):
        Subject(adapter, sample, request, tmp_path, lambda: False)
