"""Which questions a checkpoint declares it was trained on, and what a result says of others."""

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.demo.demo_dataset import DEMO_MODELS
from engine.demo.wordings import ASKED
from engine.models import model_card, registry
from engine.pipeline import batch_run, single_run
from engine.storage.result_rows import ResultRow
from engine.types import DecodeConfig, ModelInfo, RunOptions, RunRequest, Sample
from tests.models.conftest import entry_for
from tests.models.published_folders import write

TRAINED = [wording for kind in ASKED.values() for wording in kind]
OFF_SCRIPT = ("What colour is the car?", "Why did the chicken cross the road?")


@pytest.fixture(scope="module", params=DEMO_MODELS)
def card(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ModelInfo:
    """A shipped checkpoint's card; no weight is read for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAGESCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return registry.card(registry.entry(request.param))


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
