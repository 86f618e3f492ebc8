"""The generic adapter: features through the cache, what is shown, what is refused, rope deltas."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import media
from engine.errors import BadInput, ContextTooLong
from engine.models import auto_processor, registry
from engine.models.transformers_adapter import TransformersAdapter
from engine.pipeline import single_run
from engine.pipeline.feature_cache import FeatureCache
from engine.types import (
    DecodeConfig,
    Features,
    Media,
    Prepared,
    RunOptions,
    RunRequest,
    RunResult,
    Sample,
)
from tests import published_checkpoints
from tests.conftest import shaped_sample, slow_unless
from tests.models.conftest import entry_for
from tests.models.published_folders import change

pytestmark = pytest.mark.loads
QUESTION, LONGER = "What is it?", "What is on the left of the road, and is it dark or light there?"
GREEDY = DecodeConfig(max_new_tokens=12, min_new_tokens=12)
Load = Callable[..., TransformersAdapter]


@pytest.fixture(scope="module", autouse=True)
def _models_stay_loaded() -> Iterator[None]:
    yield
    registry._held.clear()  # unload(), without a garbage collection for each


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """Wide and tall pictures: a square one hides a grid with height and width swapped."""
    return shaped_sample(tmp_path / "sample")


@pytest.fixture
def load(family_folder: Callable[[str], Path], cache_dir: Path) -> Load:
    """A family's small checkpoint through the registry."""

    def loaded(family: str, shows: Any = "events", folder: Path | None = None) -> Any:
        entry = entry_for(folder or family_folder(family), "transformers")
        return registry.load(replace(entry, name=f"small-{family}", kind=shows))

    return loaded


def shown(adapter: TransformersAdapter, sample: Sample, count: int | None = None) -> Media:
    found = media.load(sample, adapter.kind)
    return replace(found, images=found.images[:count])


def encoded(adapter: TransformersAdapter, prepared: Prepared) -> Features:
    with torch.inference_mode():
        return adapter.encode(prepared)


def first_logits(
    adapter: TransformersAdapter, prepared: Prepared, features: Features
) -> torch.Tensor:
    with torch.inference_mode():
        return adapter.decoder.prefill(adapter.embed(prepared, features))[0]


def run(
    adapter: TransformersAdapter, sample: Sample, question: str = QUESTION, **options: Any
) -> RunResult:
    config = options.pop("decode", GREEDY)
    request = RunRequest(sample, adapter.info.name, question, RunOptions(decode=config, **options))
    return single_run.run(adapter, request, None)


@pytest.mark.parametrize(
    ("family", "names"),
    [
        ("qwen3_vl", {"pooler_output.2", "deepstack_features.1.2"}),  # lists within a list
        pytest.param(  # one tensor per picture
            "llava_next", {"pooler_output.0", "pooler_output.2"}, marks=pytest.mark.slow
        ),
        pytest.param("gemma3", {"pooler_output"}, marks=pytest.mark.slow),
    ],
)
def test_features_come_back_from_the_cache_bit_for_bit(
    family: str, names: set[str], load: Load, sample: Sample, tmp_path: Path
) -> None:
    adapter = load(family)
    prepared = adapter.preprocess(shown(adapter, sample, 3), QUESTION)
    features, spec = encoded(adapter, prepared), adapter.feature_spec(prepared)
    cache = FeatureCache(tmp_path / "kept", 64)
    cache.write(spec, features, 1.0, cold=False)
    stored = cache.read(spec)
    assert stored is not None and adapter.takes(prepared, stored.features)
    read = stored.features.tensors
    assert names <= set(read) == set(features.tensors)
    for name, tensor in features.tensors.items():
        assert read[name].dtype == tensor.dtype and torch.equal(read[name], tensor), name
    one, two = (first_logits(adapter, prepared, some) for some in (features, stored.features))
    assert torch.equal(one, two)


@pytest.mark.parametrize("part", ["deepstack_features", "pooler_output"])
def test_every_named_tensor_reaches_the_answer(part: str, load: Load, sample: Sample) -> None:
    """The control of the round trip: a part that is left blank gives other logits."""
    adapter = load("qwen3_vl")
    prepared = adapter.preprocess(shown(adapter, sample, 3), QUESTION)
    features = encoded(adapter, prepared)
    blank = {
        name: torch.zeros_like(one) if name.startswith(part) else one
        for name, one in features.tensors.items()
    }
    one, two = (first_logits(adapter, prepared, some) for some in (features, Features(blank)))
    assert float((one - two).abs().max()) > 0.02


@pytest.mark.parametrize(
    ("shows", "words"),
    [
        ("events", "5 event images as 5 images"),
        ("image", "frame folder: frame 5 of 10 (middle)"),
    ],
)
def test_a_result_says_what_was_shown(shows: str, words: str, load: Load, sample: Sample) -> None:
    found = run(load("qwen2_5_vl", shows), sample)
    assert found.shown.startswith(words)
    assert found.generation.prompt_tokens > 30 and found.backend == "eager"


@pytest.mark.parametrize(("family", "padded"), [("idefics2", True), ("smolvlm", False)])
def test_only_idefics_2_pads_pictures_of_one_prompt(
    family: str, padded: bool, load: Load, sample: Sample
) -> None:
    """Idefics 3 and SmolVLM cut pictures into equal squares: a pixel mask of ones is their own."""
    adapter = load(family)
    mask = adapter.preprocess(shown(adapter, sample), QUESTION).inputs["pixel_attention_mask"]
    assert bool((mask == 0).any()) is padded


def test_too_many_pictures_for_the_context_are_one_sentence(
    load: Load, sample: Sample, family_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(family_folder("smolvlm"), tmp_path / "smolvlm"))
    text = published_checkpoints.read_config(folder)["text_config"]
    change(folder, "config.json", text_config=text | {"max_position_embeddings": 80})
    adapter = load("smolvlm", "video", folder)
    with pytest.raises(ContextTooLong) as caught:
        run(adapter, sample)
    said = str(caught.value)
    assert said.startswith("small-smolvlm has a context of 80 tokens; this prompt has ")
    assert said.endswith(": show it fewer pictures, such as one image, or shorten the question.")


@pytest.mark.parametrize("family", slow_unless(["blip-2"], ["blip-2", "instructblip", "git"]))
def test_models_that_take_one_picture_say_so(family: str, load: Load, sample: Sample) -> None:
    with pytest.raises(BadInput) as caught:
        run(load(family), sample)
    assert f"{family} models has room for 1 picture" in str(caught.value)
    assert 'shows = "image"' in str(caught.value)
    assert run(load(family, "image"), sample).generation.token_ids  # the control


def test_a_processor_that_fails_on_pictures_is_one_sentence(
    load: Load, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_only(processor: Any, prompt: str, images: Any, rate: Any) -> Any:
        raise ValueError(f"Got {len(images)} images\nand one place")

    adapter = load("llava_onevision")
    monkeypatch.setattr(auto_processor, "inputs", one_only)
    with pytest.raises(BadInput) as caught:
        run(adapter, sample)
    assert str(caught.value) == (
        "small-llava_onevision does not take 5 pictures of this size (Got 5 images): show it one "
        "picture, or a larger one."
    )


def test_markers_of_pictures_in_a_question_are_refused(load: Load, sample: Sample) -> None:
    with pytest.raises(BadInput, match="image_pad"):
        run(load("qwen2_5_vl"), sample, "What is <|image_pad|> here?")


def test_the_compiled_step_is_refused_by_a_note(load: Load, sample: Sample) -> None:
    adapter = load("qwen2_5_vl")
    found = run(adapter, sample, decode=replace(GREEDY, backend="compiled"))
    assert found.backend == "eager" and adapter.use.compiled is None
    note = "Its tokens are decoded eagerly: the compiled step is only proved for LLaMA."
    assert note in found.notes
    assert note not in run(adapter, sample).notes


def test_features_that_read_the_question_have_it_in_their_key(load: Load, sample: Sample) -> None:
    """A Q-Former reads the question; the encoders of other families do not."""

    def specs(family: str) -> list[Any]:
        adapter = load(family, "image")
        some = shown(adapter, sample)
        return [adapter.feature_spec(adapter.preprocess(some, q)) for q in (QUESTION, LONGER)]

    one, two = specs("instructblip")
    assert one.question and two.question and one != two
    one, two = specs("qwen2_5_vl")
    assert one == two and one.question == ""


def test_variants_and_copies_share_the_model_and_its_facts(load: Load, sample: Sample) -> None:
    adapter = load("qwen2_5_vl")
    card = replace(adapter.info, name="small-qwen2_5_vl@image", shows="image")
    variant, copy = adapter.remade(card, notes=("a note",)), adapter.remade(adapter.info)
    assert isinstance(variant, TransformersAdapter) and isinstance(copy, TransformersAdapter)
    for other in (variant, copy):
        assert other.model is adapter.model and other.refuses == adapter.refuses
        assert other.vision_modules() == adapter.vision_modules()
    assert (variant.kind, copy.kind, adapter.kind) == ("image", "events", "events")
    assert variant.notes[-1] == "a note" and "a note" not in adapter.notes
    assert "as" not in run(variant, sample).shown.split()  # one picture as itself
