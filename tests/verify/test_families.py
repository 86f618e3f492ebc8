"""Every small family through the real registry: each way of verify answers as plain, or is refused.

What these tests find equal is what families.py calls proved; nothing else is offered.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path

import pytest
import torch
from PIL import Image as Pictures

from engine.decoding import batched
from engine.models import auto_processor, families, registry
from engine.models.adapter import Adapter
from engine.models.families import OWN
from engine.types import Sample
from engine.verify import checks, pictures, runner
from engine.verify.answer_paths import AnswerRecorder, RecordedAnswer, Subject, rounding
from engine.verify.checks import AnswerComparison
from engine.verify.verdict import CHECKS, VerifyRequest
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
Ask = Callable[..., "Asked"]


@dataclass(frozen=True)
class Asked:
    """A model with a question about a sample, its plain answer, and what rounding explains."""

    subject: Subject
    plain: RecordedAnswer
    rounding: float

    @property
    def adapter(self) -> Adapter:
        return self.subject.adapter

    @cached_property
    def answers(self) -> dict[str, RecordedAnswer]:
        """Those of the other ways, in their order: features are computed before they are read."""
        ways, config = self.subject.ways[1:], self.subject.greedy
        return {way: getattr(self.subject, way)(config) for way in ways}

    def compared(self, way: str) -> AnswerComparison:
        return checks.compare(self.plain, self.answers[way], self.rounding)


@pytest.fixture(scope="module")
def ask(
    family_folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ask]:
    """A family's model, asked once for all tests of this file."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAGESCOPE_CACHE_DIR", str(folder / "cache"))
        patch.setenv("STAGESCOPE_DEVICE", "cpu")
        asked = cache(partial(_asked, pictured(folder), folder))

        def found(family: str, variant: str = "", generic: bool = False) -> Asked:
            name = _registered(family, family_folder, folder, patch, generic and family in OWN)
            return asked(f"{name}@{variant}" if variant else name)

        yield found
    registry._held.clear()  # unload(), without a garbage collection for each


def _registered(
    family: str,
    built: Callable[[str], Path],
    folder: Path,
    patch: pytest.MonkeyPatch,
    generic: bool = False,
) -> str:
    """The name of a models.toml's entry that leaves the family to config.json, or to transformers'
    own classes if it is `generic`."""
    if family in NEED_TORCHVISION and not auto_processor.can_video():
        pytest.skip(f"the processor of {family} needs torchvision, which cannot be imported here")
    shows = "image" if family_checkpoints.most_images(family) == 1 else "events"
    name, file = f"{'generic' if generic else 'small'}-{family}", folder / "models.toml"
    file.write_text(
        f'[[model]]\nname = "{name}"\nlabel = "Small {family}"\n'
        f'checkpoint = "{built(family)}"\nshows = "{shows}"\n'
        + 'family = "transformers"\n'
        * generic,
        encoding="utf-8",
    )
    patch.setenv("STAGESCOPE_MODELS", str(file))
    return name


def pictured(folder: Path, seed: int = 0) -> Sample:
    """A sample with a few event images, wide and tall, and frames."""
    found = shaped_sample(folder, seed)
    return replace(found, event_images=found.event_images[:PICTURES])


def _asked(sample: Sample, folder: Path, name: str) -> Asked:
    request = VerifyRequest((name,), (sample,), max_new_tokens=TOKENS, runs=1)
    adapter = registry.load(registry.entry(name))
    subject = Subject(adapter, sample, request, folder / name, lambda: False)
    plain = subject.plain(subject.greedy)
    return Asked(subject, plain, rounding(adapter, subject.prepared, plain))


@pytest.mark.parametrize("dtype", slow_unless(["float32"], DTYPES))
@pytest.mark.parametrize("family", each(FAMILIES))
def test_every_way_answers_as_plain(family: str, dtype: str, ask: Ask) -> None:
    asked = ask(family, "" if dtype == "float32" else dtype)
    several = family not in families.ONE_PICTURE
    assert several is (family_checkpoints.most_images(family) != 1)
    assert len(asked.subject.media.images) == (PICTURES if several else 1)
    assert str(asked.adapter.dtype) == f"torch.{dtype}" and len(asked.plain.ids) == TOKENS
    assert asked.rounding < NOISE[dtype] * float(asked.plain.logits.abs().max())
    for way in asked.answers:
        compared = asked.compared(way)
        assert compared.result in DTYPES[dtype], f"{way}: {compared.sentence}"


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("family", each(FAMILIES))
def test_every_way_answers_as_the_model_without_the_adapter(family: str, ask: Ask) -> None:
    """The processor's own outputs go to the model's own generate()."""
    asked = ask(family, generic=True)
    adapter, subject, images = asked.adapter, asked.subject, asked.subject.media.images
    text = adapter.prompt_text(subject.request.prompt, len(images))
    bos = {"add_special_tokens": False} if text.startswith(adapter.tokenizer.bos_token) else {}
    pictures = [[Pictures.fromarray(image) for image in images]]
    inputs = adapter.processor(text=[text], images=pictures, return_tensors="pt", **bos)
    inputs.pop("labels", None)
    config = subject.own_generation(subject.greedy)
    with torch.inference_mode(), AnswerRecorder(adapter) as watch:
        out = adapter.model.generate(**inputs, generation_config=config)
    alone = watch.answer("alone", subject.new_ids(out, len(watch.rows)))
    for answer in (asked.plain, *asked.answers.values()):
        compared = checks.compare(alone, answer, asked.rounding)
        assert compared.result == "EXACT", f"{answer.way}: {compared.sentence}"


@pytest.mark.parametrize("kind", slow_unless(["image"], ["image", "events", "video"]))
@pytest.mark.parametrize("family", each(FAMILIES))
def test_wide_and_tall_pictures_pass_the_check_of_shapes(
    family: str, kind: str, ask: Ask, tmp_path: Path
) -> None:
    if family_checkpoints.most_images(family) == 1 and kind != "image":
        pytest.skip(f"{family} takes one picture")
    found = pictures.shapes(ask(family, kind).subject, tmp_path, lambda _: None)
    assert found.outcome == "passed", found.sentence


@pytest.mark.parametrize("family", each(sorted(OWN.keys() & set(FAMILIES))))
def test_families_with_an_adapter_of_their_own_run_through_the_generic_one_too(
    family: str, ask: Ask
) -> None:
    own, asked = ask(family), ask(family, generic=True)
    assert own.adapter.info.family == family
    assert asked.adapter.info.family == "transformers"
    for way in asked.answers:
        assert asked.compared(way).result == "EXACT", way
    if family == "llava":  # Video-LLaVA's own adapter takes the pictures as a clip
        assert asked.plain.ids == own.plain.ids


@pytest.mark.parametrize("family", each(FAMILIES))
def test_other_pictures_give_other_logits(family: str, ask: Ask, tmp_path: Path) -> None:
    """The control: an answer that does not depend on the pictures would be equal in every way."""
    asked = ask(family)
    sample, request = pictured(tmp_path / "other", 30), asked.subject.request
    other = Subject(asked.adapter, sample, request, tmp_path / "f", lambda: False)
    moved = checks.compare(asked.plain, other.plain(other.greedy), asked.rounding)
    assert moved.result in ("DRIFT", "MISMATCH"), moved.sentence


@pytest.mark.parametrize("family", each(SEAM))
@torch.inference_mode()
def test_features_set_to_zero_give_other_logits(family: str, ask: Ask) -> None:
    asked = ask(family)
    features = asked.adapter.encode(asked.subject.prepared)
    blind = features.changed(torch.zeros_like)
    seen, unseen = (
        asked.adapter.decoder.prefill(asked.adapter.embed(asked.subject.prepared, one))[0]
        for one in (features, blind)
    )
    assert float((seen[0] - asked.plain.logits[0]).abs().max()) <= 2 * asked.rounding
    assert float((seen - unseen).abs().max()) > 20 * asked.rounding


@pytest.mark.parametrize("family", each(SEAM))
@torch.inference_mode()
def test_forced_tokens_have_the_models_own_log_probabilities(family: str, ask: Ask) -> None:
    asked = ask(family)
    adapter, prepared, ids = asked.adapter, asked.subject.prepared, asked.plain.ids
    prompt = adapter.embed(prepared, adapter.encode(prepared))
    wanted = torch.tensor(list(ids))[:, None]
    found = batched.forced_logprobs(adapter.decoder, [prompt], ids, wanted)[0, :, 0]
    logs = torch.log_softmax(asked.plain.logits.float(), dim=-1)
    own = logs[range(TOKENS), list(ids)]
    assert float((found - own).abs().max()) <= 4 * asked.rounding
    assert float((found[1:] - own[:-1]).abs().max()) > 20 * asked.rounding  # the control


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "refused"),
    [("qwen2_5_vl", {"batch"}), ("paligemma", {"batch"}), ("mllama", {"batch", "decoupled"})],
)
def test_a_whole_verification_finds_no_fault(
    family: str,
    refused: set[str],
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "PAIRS", 3)
    request = replace(ask(family).subject.request, batch=2)
    (examined,) = runner.verify(request, Notes())
    found = [one for one in examined.verdicts if one.check not in UNSTEADY]
    unsettled = [
        f"{one.check} {one.outcome}: {one.sentence}"
        for one in found
        if one.outcome == "failed"
        or (one.outcome == "unresolved" and not CHECKS[one.check].may_stay_open)
    ]
    assert not unsettled, unsettled
    assert {one.check for one in found} == set(CHECKS) - UNSTEADY
    wanted = {check for check, row in CHECKS.items() if row.needs in refused} - UNSTEADY
    wanted |= {"rows"}  # transformers' own
    assert {one.check for one in found if one.outcome == "refused"} == wanted
