"""Which questions a checkpoint declares it was trained on, and what a result says of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.demo.evaluate import DEMO_MODELS
from engine.demo.wordings import ASKED
from engine.errors import ModelUnavailable
from engine.models import model_card, registry
from engine.pipeline import batch_run, single_run
from engine.prompts import COMMON_QUESTIONS, DEFAULT_QUESTION
from engine.storage.result_rows import ResultRow
from engine.types import OWN, DecodeConfig, ModelInfo, RunOptions, RunRequest, Sample
from tests.models.conftest import entry_for
from tests.models.published_folders import write
from tests.ui.answers import result

TRAINED = [wording for kind in ASKED.values() for wording in kind]
OFF_SCRIPT = ("What colour is the car?", "Why did the chicken cross the road?")
NEAR = (
    "What are the key elements in this scene? What colour is the car?",
    "What are the key elements of this scene?",
    "Is there a red car?",
    "Is it day?",
    "Describe the scene in one word.",
    "Does the road curve? Answer with yes or no.",
    "IS IT DAY OR NIGHT?",  # in capitals and in title case answers are often wrong
    "What Is The Layout Of The Road?",
    "What  is  the  layout  of  the  road?",  # so are those to doubled spaces
    "?",
)


@pytest.fixture(scope="module", params=DEMO_MODELS)
def card(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelInfo:
    """A shipped checkpoint's card; no weight is read for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAGESCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return registry.card(registry.entry(request.param))


def test_a_question_that_was_not_trained_is_off_script(card: ModelInfo) -> None:
    assert [one for one in (*OFF_SCRIPT, *NEAR) if card.off_script(one) is not True] == []


def test_own_files_are_nothing_that_was_trained(card: ModelInfo) -> None:
    made = result()
    trained = replace(made, model=card, request=replace(made.request, prompt=DEFAULT_QUESTION))
    own = replace(trained.request, sample=replace(made.request.sample, sequence=OWN))
    assert replace(trained, request=own).off_script is True
    assert trained.off_script is False  # control


def test_control_no_form_of_a_trained_or_offered_question_is(card: ModelInfo) -> None:
    forms = []
    for question in (*TRAINED, *COMMON_QUESTIONS):
        bare = question.rstrip("?.")
        forms += [question, question.lower(), bare, bare.lower(), f"{bare}!", f"{bare} ?"]
        forms += [question.replace(" ", other, 1) for other in ("  ", "\n", "\t")]
        forms += [f"  {question}\n", question.replace("'", "\u2019")]
    assert [form for form in forms if card.off_script(form) is not False] == []


def test_the_shipped_files_hold_what_training_asks() -> None:
    for folder in (registry.entry(name).folder for name in DEMO_MODELS):
        assert folder is not None
        found = json.loads((folder / model_card.TRAINED).read_text(encoding="utf-8"))
        inputs = {"inputs": ["image", "events"]} if "qwen" in folder.name else {}
        assert found == {"questions": TRAINED} | inputs


@pytest.mark.loads
def test_a_demo_model_with_two_inputs_is_only_warned_of_a_third(cache_dir: Path) -> None:
    known, unknown = (
        registry.load(registry.entry(f"qwen2.5-vl-demo@{shows}")).notes
        for shows in ("events", "video")
    )
    assert not any("not trained" in note for note in known)
    assert any("not trained on 8 frames" in note for note in unknown)


@pytest.fixture
def declared(tiny_models: Path, tiny_copy: Callable[..., Path]) -> Path:
    """A checkpoint of no demo entry that declares one question."""
    folder = tiny_copy("llava")
    write(folder, model_card.TRAINED, {"questions": ["Is it dark?"]})
    return folder


@pytest.mark.loads
def test_the_checkpoint_decides_and_no_entry_and_no_name(
    declared: Path, tiny_models: Path, sample: Sample
) -> None:
    """`demo = true` alone says nothing, and neither does `demo = false`."""
    assert registry.entry("tiny-llava").demo
    plain = registry.load(registry.entry("tiny-llava"))
    brief = DecodeConfig(max_new_tokens=2)
    adapter = registry.load(entry_for(declared, "llava"))
    for model, question, wanted in (
        (plain, "What colour is the car?", None),
        (adapter, "What colour is the car?", True),
        (adapter, "is it dark", False),
    ):
        request = RunRequest(sample, model.info.name, question, RunOptions(decode=brief))
        result = single_run.run(model, request, None)
        assert result.off_script is wanted and ResultRow.from_result(result).off_script is wanted
        together = batch_run.run(model, [request, request], None)
        assert [ResultRow.from_result(one).off_script for one in together] == [wanted, wanted]


def test_the_declaration_is_part_of_the_checkpoints_digest(declared: Path) -> None:
    item = entry_for(declared, "llava")
    before = registry.full_digest(item)
    write(declared, model_card.TRAINED, {"questions": ["Is it dark?", "What colour is the car?"]})
    assert registry.full_digest(item) != before
    assert registry.card(item).off_script("What colour is the car?") is False


@pytest.mark.parametrize("content", [{}, {"questions": []}, {"questions": [1]}])
def test_a_broken_declaration_is_one_sentence(declared: Path, content: dict[str, Any]) -> None:
    write(declared, model_card.TRAINED, content)
    with pytest.raises(ModelUnavailable, match=model_card.TRAINED) as caught:
        registry.card(entry_for(declared, "llava"))
    assert "restore it from a copy" in str(caught.value)
