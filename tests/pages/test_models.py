"""The Models page: who the models are, why one cannot be used, loading, and the feature cache."""

import platform
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.jobs import queue as jobs
from engine.jobs.model_work import ModelJob
from engine.models import registry
from engine.pipeline import feature_cache, single_run
from engine.types import DecodeConfig, RunOptions, RunRequest, Sample
from engine.verify import certificates
from tests.jobs import waiting
from tests.pages.conftest import Open
from tests.pages.reading import html, texts
from tests.tiny import unload_all
from tests.ui.verify.made import PLACE, certificate
from ui.models import memory_view

NAME = "tiny-llava"
Plant = Callable[..., None]


@pytest.fixture(autouse=True)
def nothing_loaded(tiny_models: Path) -> Iterator[None]:
    unload_all()
    jobs.manager.cache_clear()  # cards tell of the last job of each model
    yield
    for job in memory_view.JOBS.live():
        job.cancel()


def opened(app: Open) -> AppTest:
    return app("pages/models.py").run()


def marks(at: AppTest) -> str:
    return " ".join(element.value for element in at.markdown)


def keys(at: AppTest) -> set[str]:
    return {str(button.key) for button in at.button if button.key}


def wait() -> None:
    """Until no job of a model is under way."""
    for job in memory_view.JOBS.live():
        waiting.wait(job)


def press(at: AppTest, key: str) -> AppTest:
    at.button(key=key).click().run()
    wait()
    at.run()
    assert not at.exception
    return at


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Makes a models.toml of these rows."""

    def made(*rows: str) -> None:
        other = tmp_path / "models.toml"
        other.write_text("\n".join(rows), encoding="utf-8")
        monkeypatch.setenv("STAGESCOPE_MODELS", str(other))

    return made


def row(name: str, checkpoint: str | Path, family: str = "llava") -> str:
    return f'[[model]]\nname = "{name}"\nfamily = "{family}"\ncheckpoint = "{checkpoint}"\n'


def test_a_certificate_is_named_where_it_covers_a_model_now(app: Open) -> None:
    at = opened(app)
    entry = registry.entry(NAME)
    here = PLACE | {"hardware": platform.machine()}
    digest = registry.full_digest(entry)
    kept = certificate(name=entry.name, digest=digest, environment=here, shows=entry.kind)
    certificates.store(kept)
    at.run()
    assert marks(at).count("same answer as generate(), timing verified") == 1
    assert marks(at).count("unverified") == 2
    labels = [link.proto.label for link in at.get("page_link")]
    assert sum("certificate" in label for label in labels) == 1


def test_load_and_unload(app: Open) -> None:
    at = press(opened(app), f"models_load_{NAME}")
    assert registry.resident() == (registry.entry(NAME),)
    assert marks(at).count("loaded on cpu") == 1 and marks(at).count("ready to load") == 2
    assert html(at).count("<dt>Missing weights</dt><dd>none") == 1
    assert f"models_load_{NAME}" not in keys(at)
    at = press(at, f"models_unload_{NAME}")
    assert registry.resident() == () and marks(at).count("ready to load") == 3
    assert "of weights freed" in texts(at)


def test_the_full_hash_is_computed_on_demand(app: Open) -> None:
    at = opened(app)
    assert html(at).count("not computed") == 3
    at = press(at, f"models_hash_{NAME}")
    digest = registry.card(registry.entry(NAME)).digest
    assert digest and digest in html(at) and html(at).count("not computed") == 2
    assert f"models_hash_{NAME}" not in keys(at) and registry.resident() == ()


def test_a_queued_job_has_a_place_and_cancel(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = opened(app)
    queue = jobs.Jobs()
    monkeypatch.setattr(queue, "_start", lambda: None)  # the device is busy for good
    monkeypatch.setattr(jobs, "manager", lambda: queue)
    queue.submit(ModelJob(entry=registry.entry("tiny-eventgpt"), action="hash"))
    at.button(key=f"models_load_{NAME}").click().run()
    bars = [element.proto.text for element in at.get("progress")]
    assert bars[:2] == ["Queued: next", "Queued: 1 job ahead"]
    assert f"models_load_{NAME}" not in keys(at)
    at.button(key=f"models_cancel_{NAME}").click().run()
    at.run()
    assert "was cancelled before it started" in texts(at) and f"models_load_{NAME}" in keys(at)


def test_what_is_missing_or_broken_says_what_to_do(
    app: Open, tiny_models: Path, tmp_path: Path, plant: Plant
) -> None:
    short = Path(shutil.copytree(tiny_models / "llava", tmp_path / "short"))
    file = short / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    rows = [row("short", "./short"), row("gone", "./gone"), row("hub", "nobody/has-this-7b")]
    rows.append(row("wrong", tiny_models / "llava", family="video_llava"))
    plant(*rows)
    at = opened(app)
    assert marks(at).count("not installed") == marks(at).count("cannot be loaded") == 2 and not any(
        "_load_" in key for key in keys(at)
    )
    for words in (
        "not a complete safetensors file",
        "gone is not on this machine",
        "Their files are not on this machine. Run the command once",
        "wrong is entered as video_llava",
    ):
        assert words in texts(at)
    assert "hub has not been downloaded" not in texts(at)  # the command says it
    assert [code.value for code in at.code] == ["python -m engine download hub"]
    assert "Hugging Face hub: nobody/<wbr>has-this-7b" in html(at)


def test_a_model_too_large_cannot_be_loaded(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.device, "free_bytes", lambda: 10)
    at = opened(app)
    assert texts(at).count("but 10 bytes are free") == 3 and html(at).count("KV cache") == 3
    assert {key for key in keys(at) if "_hash_" in key} and f"models_load_{NAME}" not in keys(at)


def filled(sample: Sample) -> None:
    """The features of one sample of two models in the cache, one of them read again."""
    options = RunOptions(decode=DecodeConfig(max_new_tokens=2))
    for name in (NAME, NAME, "tiny-eventgpt"):
        model = registry.load(registry.entry(name))
        single_run.run(model, RunRequest(sample, name, "What?", options), feature_cache.shared())


def test_the_cache_is_cleared(app: Open, sample: Sample) -> None:
    at = opened(app)
    assert "no reads since" in html(at)
    filled(sample)
    at.run()
    assert "33% (1 of 3 reads" in html(at) and "features" in html(at)
    assert "Clear all 2 entries (" in texts(at)
    at.button(key="models_clear_yes").click().run()
    assert "Cleared all 2 entries (" in texts(at) and not at.exception
    assert feature_cache.shared().state().entries == 0
