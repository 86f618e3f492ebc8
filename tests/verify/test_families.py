"""Every small family through the real registry: each way of verify answers as plain, or is refused.

What these tests find equal is what families.py calls proved; nothing else is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import torch
from PIL import Image as Pictures

from engine.attribution import explain
from engine.attribution.explained import ExplainRequest
from engine.decoding import decode, forced
from engine.errors import BadInput
from engine.models import auto_processor, families, registry
from engine.models.adapter import Adapter
from engine.models.families import OWN
from engine.types import RunOptions, Sample
from engine.verify import checks, pictures, runner
from engine.verify.answer_paths import WAYS, AnswerRecorder, RecordedAnswer, Subject, rounding
from engine.verify.checks import AnswerComparison
from engine.verify.verdict import CHECKS, Verdict, VerifyRequest
from tests.conftest import shaped_sample, slow_unless
from tests.models import family_checkpoints
from tests.models.family_checkpoints import FAMILIES, NEED_TORCHVISION, each
from tests.verify.conftest import Notes
from tests.verify.test_faults import UNSTEADY

pytestmark = pytest.mark.loads
PICTURES, TOKENS = 3, 12
SEAM = tuple(one for one in FAMILIES if one not in families.HOOKED_ONLY)
NO_SEAM = tuple(one for one in FAMILIES if one not in SEAM)
DTYPES = {"float32": ("EXACT",), "bfloat16": ("EXACT", "NUMERIC TIE")}
NOISE = {"float32": 1e-4, "bfloat16": 0.05}  # rounding is a small share of the largest logit
Models = Callable[..., str]


@dataclass(frozen=True)
class Asked:
    """A model with a question about a sample, its plain answer, and what rounding explains."""

    subject: Subject
    plain: RecordedAnswer
    rounding: float

    @property
    def adapter(self) -> Adapter:
        return self.subject.adapter

    def compared(self, way: str) -> AnswerComparison:
        return checks.compare(self.plain, self.answer(way), self.rounding)

    def answer(self, way: str) -> RecordedAnswer:
        found: RecordedAnswer = getattr(self.subject, way)(self.subject.greedy)
        return found


@pytest.fixture(scope="module", autouse=True)
def _models_stay_loaded() -> Iterator[None]:
    """Until all tests of this file have used them: they are tiny."""
    yield
    registry._held.clear()  # unload(), without a garbage collection for each


@pytest.fixture
def models(
    family_folder: Callable[[str], Path],
    cache_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Models:
    """The name of a family's entry in a models.toml that leaves the family to config.json."""
    return partial(_registered, family_folder, tmp_path, monkeypatch)


def _registered(
    built: Callable[[str], Path],
    folder: Path,
    patch: pytest.MonkeyPatch,
    family: str,
    more: str = "",
    checkpoint: Path | None = None,
) -> str:
    if family in NEED_TORCHVISION and not auto_processor.can_video():
        pytest.skip(f"the processor of {family} needs torchvision, which cannot be imported here")
    shows = "image" if family_checkpoints.most_images(family) == 1 else "events"
    name, file = f"small-{family}", folder / "models.toml"
    file.write_text(
        f'[[model]]\nname = "{name}"\nlabel = "Small {family}"\n'
        f'checkpoint = "{checkpoint or built(family)}"\nshows = "{shows}"\n{more}',
        encoding="utf-8",
    )
    patch.setenv("STAGESCOPE_MODELS", str(file))
    return name


def pictured(folder: Path, seed: int = 0) -> Sample:
    """A sample with a few event images, wide and tall, and frames."""
    found = shaped_sample(folder, seed)
    return replace(found, event_images=found.event_images[:PICTURES])


@contextmanager
def asked(name: str, folder: Path) -> Iterator[Asked]:
    sample = pictured(folder / "sample")
    request = VerifyRequest((name,), (sample,), max_new_tokens=TOKENS, runs=1)
    adapter = registry.load(registry.entry(name))
    subject = Subject(adapter, sample, request, folder / "features", lambda: False)
    plain = subject.plain(subject.greedy)
    yield Asked(subject, plain, rounding(adapter, subject.prepared, plain))


def test_there_are_as_many_families_as_were_measured() -> None:
    assert len(SEAM) >= 22 and set(NO_SEAM) == set(family_checkpoints.NO_SEAM)


@pytest.mark.parametrize("dtype", slow_unless(["float32"], DTYPES))
@pytest.mark.parametrize("family", each(FAMILIES))
def test_every_way_answers_as_plain(
    family: str, dtype: str, models: Models, tmp_path: Path
) -> None:
    with asked(
        f"{models(family)}@{dtype}" if dtype != "float32" else models(family), tmp_path
    ) as a:
        several = family not in families.ONE_PICTURE
        assert several is (family_checkpoints.most_images(family) != 1)
        assert len(a.subject.media.images) == (PICTURES if several else 1)
        assert str(a.adapter.dtype) == f"torch.{dtype}" and len(a.plain.ids) == TOKENS
        assert a.rounding < NOISE[dtype] * float(a.plain.logits.abs().max())
        found = {way: a.compared(way) for way in a.subject.ways if way != "plain"}
        for way, compared in found.items():
            assert compared.result in DTYPES[dtype], f"{way}: {compared.sentence}"


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("family", each(FAMILIES))
def test_every_way_answers_as_the_model_without_the_adapter(
    family: str, models: Models, tmp_path: Path
) -> None:
    """The processor's own outputs go to the model's own generate()."""
    with asked(models(family, 'family = "transformers"\n'), tmp_path) as a:
        adapter, subject, images = a.adapter, a.subject, a.subject.media.images
        text = adapter.prompt_text(subject.request.prompt, len(images))
        bos = {"add_special_tokens": False} if text.startswith(adapter.tokenizer.bos_token) else {}
        pictures = [[Pictures.fromarray(image) for image in images]]
        inputs = adapter.processor(text=[text], images=pictures, return_tensors="pt", **bos)
        inputs.pop("labels", None)
        config = subject.own_generation(subject.greedy)
        with torch.inference_mode(), AnswerRecorder(adapter) as watch:
            out = adapter.model.generate(**inputs, generation_config=config)
        alone = watch.answer("alone", subject.new_ids(out, watch.steps))
        for answer in (a.plain, a.answer("decoupled" if family in SEAM else "hooked")):
            compared = checks.compare(alone, answer, a.rounding)
            assert compared.result == "EXACT", f"{answer.way}: {compared.sentence}"


@pytest.mark.parametrize("kind", slow_unless(["image"], ["image", "events", "video"]))
@pytest.mark.parametrize("family", each(FAMILIES))
def test_wide_and_tall_pictures_pass_the_check_of_shapes(
    family: str, kind: str, models: Models, tmp_path: Path
) -> None:
    if family_checkpoints.most_images(family) == 1 and kind != "image":
        pytest.skip(f"{family} takes one picture")
    with asked(f"{models(family)}@{kind}", tmp_path) as a:
        found = pictures.shapes(a.subject, tmp_path, str, lambda _: None)
        assert found.outcome == "passed", found.sentence


@pytest.mark.parametrize("family", each(FAMILIES))
def test_the_ways_are_those_that_the_table_names(
    family: str, models: Models, tmp_path: Path
) -> None:
    with asked(models(family), tmp_path) as a:
        refuses = a.adapter.refuses
        assert ("decoupled" not in refuses) is (family not in families.HOOKED_ONLY)
        left = {way for way, needs in WAYS.items() if not refuses.keys() & set(needs)}
        assert set(a.subject.ways) == left >= {"plain", "hooked"}
        if family in OWN:
            assert not refuses  # an adapter of its own
            return
        for way, why in refuses.items():
            assert why.endswith(".") and (family in why or way == "compiled"), (way, why)
        assert {"compiled", "batch", "draft"} <= set(refuses)


@pytest.mark.parametrize("family", each(sorted(OWN.keys() & set(FAMILIES))))
def test_families_with_an_adapter_of_their_own_run_through_the_generic_one_too(
    family: str, models: Models, tmp_path: Path
) -> None:
    with asked(models(family), tmp_path / "own") as own:
        assert own.adapter.info.family == family
        answer = own.plain
    with asked(models(family, 'family = "transformers"\n'), tmp_path / "any") as a:
        assert a.adapter.info.family == "transformers"
        for way in a.subject.ways[1:]:
            assert a.compared(way).result == "EXACT", way
        if family == "llava":  # Video-LLaVA's own adapter takes the pictures as a clip
            assert a.plain.ids == answer.ids


@pytest.mark.parametrize("family", each(FAMILIES))
def test_other_pictures_give_other_logits(family: str, models: Models, tmp_path: Path) -> None:
    """The control: an answer that does not depend on the pictures would be equal in every way."""
    with asked(models(family), tmp_path) as a:
        sample = pictured(tmp_path / "other", 30)
        other = Subject(a.adapter, sample, a.subject.request, tmp_path / "f", lambda: False)
        moved = checks.compare(a.plain, other.plain(other.greedy), a.rounding)
        assert moved.result in ("DRIFT", "MISMATCH"), moved.sentence


@pytest.mark.parametrize("family", each(SEAM))
def test_features_set_to_zero_give_other_logits(
    family: str, models: Models, tmp_path: Path
) -> None:
    with asked(models(family), tmp_path) as a, torch.inference_mode():
        features = a.adapter.encode(a.subject.prepared)
        blind = features.changed(torch.zeros_like)
        seen, unseen = (
            decode.prefill(a.adapter.decoder, a.adapter.embed(a.subject.prepared, one))[0]
            for one in (features, blind)
        )
        assert float((seen[0] - a.plain.logits[0]).abs().max()) <= 2 * a.rounding
        assert float((seen - unseen).abs().max()) > 20 * a.rounding


@pytest.mark.parametrize("family", each(SEAM))
def test_forced_tokens_have_the_models_own_log_probabilities(
    family: str, models: Models, tmp_path: Path
) -> None:
    with asked(models(family), tmp_path) as a, torch.inference_mode():
        prompt = a.adapter.embed(a.subject.prepared, a.adapter.encode(a.subject.prepared))
        found = forced.logprobs(a.adapter.decoder, [prompt], a.plain.ids)[0]
        logs = torch.log_softmax(a.plain.logits.float(), dim=-1)
        own = logs[range(TOKENS), list(a.plain.ids)]
        assert float((found - own).abs().max()) <= 4 * a.rounding
        assert float((found[1:] - own[:-1]).abs().max()) > 20 * a.rounding  # the control


def test_a_family_without_a_seam_cannot_be_explained(models: Models, tmp_path: Path) -> None:
    name = models("mllama")
    run = RunOptions().ask(pictured(tmp_path), name, "What is it?")
    with pytest.raises(BadInput, match=r"mllama takes no features, so .* choose another model"):
        explain.explain(registry.load(registry.entry(name)), ExplainRequest(run, "a car"))


@pytest.mark.parametrize("family", each(SEAM))
def test_features_are_encoded_once_and_then_read(
    family: str, models: Models, tmp_path: Path
) -> None:
    with asked(models(family), tmp_path) as a:
        computed, read = a.answer("computed"), a.answer("decoupled")
        assert computed.seen[0].calls >= 1 and sum(one.calls for one in read.seen) == 0
        assert read.result is not None
        spans = {span.name: span.source for span in read.result.spans}
        assert spans["vision"] == "cached" and spans["decode"] == "measured"


@pytest.mark.parametrize(
    ("family", "refused"),
    [
        pytest.param("qwen2_5_vl", {"batch"}, marks=pytest.mark.slow),
        pytest.param("paligemma", {"batch"}, marks=pytest.mark.slow),
        pytest.param("mllama", {"batch", "decoupled"}, marks=pytest.mark.slow),
    ],
)
def test_a_whole_verification_finds_no_fault(
    family: str,
    refused: set[str],
    models: Models,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "PAIRS", 3)
    sample = pictured(tmp_path / "sample")
    request = VerifyRequest((models(family),), (sample,), max_new_tokens=TOKENS, runs=1, batch=2)
    (examined,) = runner.verify(request, Notes())
    found = [one for one in examined.verdicts if one.check not in UNSTEADY]
    assert not _unsettled(found), _unsettled(found)
    assert {one.check for one in found} == set(CHECKS) - UNSTEADY
    wanted = {check for check, row in CHECKS.items() if row.needs in refused} - UNSTEADY
    wanted |= {"rows"}  # transformers' own
    assert {one.check for one in found if one.outcome == "refused"} == wanted


def _unsettled(found: list[Verdict]) -> list[str]:
    """What failed, or stays open although it decides the proof."""
    return [
        f"{one.check} {one.outcome}: {one.sentence}"
        for one in found
        if one.outcome == "failed"
        or (one.outcome == "unresolved" and not CHECKS[one.check].may_stay_open)
    ]
