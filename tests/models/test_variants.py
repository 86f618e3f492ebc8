"""Variants of a model: their names and labels, and what they share with it in memory."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import BadInput, UnknownModel
from engine.models import registry, variants
from engine.pipeline import single_run
from engine.types import DecodeConfig, RunOptions, RunResult, Sample
from tests import tiny
from tests.ui.verify import made

pytestmark = pytest.mark.loads


@pytest.fixture(autouse=True)
def _nothing_loaded(tiny_models: Path) -> None:
    tiny.unload_all()


@pytest.mark.parametrize(
    ("name", "canonical", "label"),
    [
        ("tiny-llava", "tiny-llava", "Tiny llava"),
        ("tiny-llava@image+float32", "tiny-llava", "Tiny llava"),
        ("tiny-llava@events+events", "tiny-llava@events", "Tiny llava · shown events"),
        (
            "tiny-llava@4bit+float16+video",
            "tiny-llava@video+float16+4bit",
            "Tiny llava · shown video · float16 · 4bit",
        ),
    ],
)
def test_a_name_means_one_variant(name: str, canonical: str, label: str) -> None:
    found = registry.entry(name)
    assert (found.name, found.label) == (canonical, label)
    assert registry.entry(canonical) == found == registry.find(name)
    assert variants.by_label(label, registry.entries()) == (found if "@" in canonical else None)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("tiny-llava@evnts", UnknownModel, "unknown word 'evnts': did you mean 'events'?"),
        ("tiny-llava@", UnknownModel, "unknown word '': known are events, video"),
        ("tiny-llava@events+video", BadInput, "two inputs (events and video): keep one"),
        ("tiny-lava@events", UnknownModel, "'tiny-lava' is not a known model: did you mean"),
    ],
)
def test_words_that_mean_nothing_are_refused(name: str, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        registry.entry(name)
    assert words in str(caught.value) and registry.find(name) is None


def test_two_names_of_one_variant_are_refused() -> None:
    names = ["tiny-llava@float16+events", "tiny-llava", "unknown"]
    assert registry.distinct(names) == ["tiny-llava@events+float16", "tiny-llava", "unknown"]
    with pytest.raises(BadInput, match="'tiny-llava' is named twice"):
        registry.distinct(["tiny-llava", "tiny-llava@image"])


def test_labels_of_one_models_columns_say_only_what_differs() -> None:
    def labels(*names: str) -> list[str]:
        return [item.label for item in variants.labelled([registry.entry(n) for n in names])]

    assert labels("tiny-llava@events", "tiny-eventgpt") == [
        "Tiny llava · shown events",
        "Tiny eventgpt",
    ]
    assert labels("tiny-llava", "tiny-llava@events") == [
        "Tiny llava · shown image",
        "Tiny llava · shown events",
    ]
    assert labels("tiny-llava@events", "tiny-llava@events+float16") == [
        "Tiny llava · float32",
        "Tiny llava · float16",
    ]


def _run(name: str, sample: Sample, **options: str) -> RunResult:
    adapter = registry.load(registry.entry(name))
    how = RunOptions(decode=DecodeConfig(max_new_tokens=4), **options)  # type: ignore[arg-type]
    return single_run.run(adapter, how.ask(sample, name, "Why?"), None)


def test_a_certificate_says_nothing_of_another_input_or_of_quantized_weights(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.verify import certificates

    shown, usual = _run("tiny-llava@events", sample), _run("tiny-llava", sample)
    assert shown.model.digest == usual.model.digest
    proof = made.certificate(digest=usual.model.digest, environment=usual.environment)
    for model in proof["models"]:
        model["coverage"] |= {"pictures": [1, 5], "natural_end": True}
        model["shows"] = "image"
    monkeypatch.setattr(certificates, "stored_certificates", lambda: [proof])
    assert certificates.certificate_status(usual).state == "verified"
    quantized = replace(usual, model=replace(usual.model, quantization="4bit"))
    assert quantized.model.precision == "float32 4bit"
    assert certificates.certificate_status(quantized).state != "verified"
    status = certificates.certificate_status(shown)
    assert status.words == "not covered: shown events (image verified)"
    proof["models"].append(proof["models"][0] | {"name": "tiny-llava@events", "shows": "events"})
    assert certificates.certificate_status(shown).state == "verified"
    assert certificates.certificate_status(usual).state == "verified"
