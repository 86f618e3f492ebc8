"""A drafting as a job and as a command: equal answers, refusals, progress, Cancel."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import main
from engine.errors import BadInput, Cancelled
from engine.jobs.model_work import DraftJob
from engine.media import dataset
from engine.models import registry
from engine.pipeline import draft_loop
from engine.pipeline.drafts import LOOKUP, DraftRequest
from engine.prompts import OFF_SCRIPT
from engine.types import DecodeConfig, Sample
from tests import recordings, tiny

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("tiny_models")]

SHORT = DecodeConfig(max_new_tokens=12)


def job(sample: Sample, draft: str = "tiny-eventgpt", **more: Any) -> DraftJob:
    options = {"decode": SHORT, "runs": 2, **more}
    return DraftJob(request=DraftRequest((sample,), "tiny-video_llava", draft, **options))


def worked(sample: Sample, draft: str = "tiny-eventgpt", **more: Any) -> DraftJob:
    """A job that has ended."""
    one = job(sample, draft, **more)
    one.work()
    return one


@pytest.mark.parametrize("draft", ["tiny-eventgpt", "tiny-llava", LOOKUP])
def test_the_drafted_answer_is_the_targets(draft: str, sample: Sample) -> None:
    one = worked(sample, draft)
    assert one.state == "done", one.error
    (tried,) = one.report.samples
    assert tried.difference is None and one.report.equal
    assert len(tried.alone) == len(tried.drafted) == 2
    assert 1 + sum(cycle.tokens for cycle in tried.cycles) == len(tried.ids) == 12
    said = "".join(mark.text for mark in tried.marks if mark.state != "rejected")
    pieces = registry.load(registry.entry("tiny-video_llava")).tokenizer.convert_ids_to_tokens(
        list(tried.ids)
    )
    assert said == "".join(pieces).replace("Ġ", " ")
    assert (tried.draft_ids is None) == (draft == LOOKUP) == (one.report.predicted is None)


def test_a_model_that_drafts_for_itself_is_accepted_whole(sample: Sample) -> None:
    one = worked(sample, "tiny-video_llava", gamma=4)
    assert one.report.mean_accepted == pytest.approx(8 / 3)  # 4, 4 and no draft for the last
    assert {mark.state for mark in one.report.samples[0].marks} == {"accepted", "own"}


def test_control_a_loop_that_believes_its_draft_is_found_out(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    def accepts_every_draft(self: Any, drafted: Any, scores: Any) -> int:
        for token in drafted:
            self.answer.ids.append(token)
            self._on_token(token)
        self.add(scores[-1:])
        return len(drafted)

    monkeypatch.setattr(draft_loop._Loop, "_accept", accepts_every_draft)
    one = worked(sample)
    assert not one.report.equal
    found = one.report.samples[0].difference
    assert not found.tied and found.logits[0] > found.logits[1]


def test_an_answer_that_only_ends_sooner_is_no_tie(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = draft_loop.generate

    def short(*arguments: Any) -> Any:
        found = whole(*arguments)
        found.ids, found.cycles = found.ids[:5], []
        return found

    monkeypatch.setattr(draft_loop, "generate", short)
    one = worked(sample, LOOKUP)
    found = one.report.samples[0].difference
    assert found.position == 5 and found.drafted == "" and not found.tied


def test_another_vocabulary_or_end_of_answers_is_refused_in_a_sentence(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = tiny.tokenizer()
    words.add_tokens(["automobile"])
    draft = registry.load(registry.entry("tiny-eventgpt"))
    for name, odd, reason in (
        ("eos_ids", (7,), "their answers end with different ids"),
        ("tokenizer", words, "cannot draft for tiny-video_llava: their vocabularies differ"),
    ):
        monkeypatch.setattr(draft, name, odd)
        one = worked(sample)
        assert one.state == "failed" and isinstance(one.failure, BadInput)
        assert reason in one.error and "\n" not in one.error


def test_samples_that_one_model_cannot_take_are_refused(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "load", lambda *_: pytest.fail("no model is needed for that"))
    blind = tuple(replace(sample, id=name, missing={"events": "No events here."}) for name in "ab")
    for samples in (blind[:1], blind):
        one = DraftJob(request=replace(job(sample).request, samples=samples))
        one.work()
        assert one.state == "failed" and one.report is None and one.error == "No events here."


def test_progress_counts_rounds_and_cancel_ends_it(sample: Sample) -> None:
    one = job(sample)
    seen = []
    count = one.round

    def look(done: int, of: int) -> None:
        count(done, of)
        seen.append(one.progress)
        if done == 1:
            one.cancel()

    one.round = look  # type: ignore[method-assign]
    one.work()
    assert seen == [(0, 3), (1, 3)]
    assert one.state == "cancelled" and isinstance(one.failure, Cancelled)
    assert one.report is None and one.ended


@pytest.fixture
def root(tiny_models: Path, tmp_path: Path) -> Path:
    """The frames of the last sample, id-1, are no pictures."""
    return recordings.root(tmp_path / "root", 2, broken=[1], raw=True)


def command(root: Path, *more: str, samples: tuple[str, ...] = ("id-0",)) -> list[str]:
    fixed = ["draft", *samples, "--dataset", str(root), "--target", "tiny-video_llava"]
    return [*fixed, "--max-new-tokens", "8", "--runs", "1", *more]


def test_the_command_prints_figures_and_json(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(root, "--draft", "tiny-eventgpt", "--gamma", "3", "--runs", "2")) == 0
    told = capsys.readouterr()
    text = told.out
    assert told.err.count("tiny-video_llava: sample ") == told.err.count(", 2 pairs ...") == 1
    assert "eager steps, at most 8 new tokens" in text
    assert "the target's own, token by token" in text and "tokens per pass" in text
    assert main(command(root, "--draft", "lookup", "--json")) == 0
    told = capsys.readouterr()
    row = json.loads(told.out)
    assert ", 1 pair ..." in told.err
    assert row["equal"] and row["draft"] == "lookup" and len(row["samples"]) == 1


def test_a_lost_sample_is_named_and_the_exit_code_is_1(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = command(root, "--draft", "lookup", samples=("id-0", "id-1"))
    assert main(both) == 1
    text = capsys.readouterr().out
    assert "sample id-1\n  no answer: " in text and "tokens per pass" in text
    assert main([*both, "--json"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert len(row["samples"]) == 1 and row["lost"][0]["sample"] == "id-1"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--draft", "tiny-eventgtp"), "did you mean 'tiny-eventgpt'"),
        (("--draft", "lookup", "--gamma", "0"), "gamma is 0"),
        (("--draft", "lookup", "--temperature", "0.7"), "greedy, but temperature is 0.7"),
    ],
)
def test_misuse_is_one_sentence_and_exit_code_2(
    root: Path, more: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(root, *more)) == 2
    assert words in capsys.readouterr().err


def test_the_command_says_so_too(
    root: Path, declared_llava: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(root, "--draft", declared_llava, "--prompt", "Why?")) == 0
    assert f"{declared_llava}: {OFF_SCRIPT}" in capsys.readouterr().out


def test_the_extent_of_event_pictures_reaches_the_draft(root: Path) -> None:
    whole = dataset.read(root).samples[0]
    raw = replace(whole, event_images=())
    for extent, words in (("slice", "sized by slice"), ("stream", "sized by stream")):
        options = {"decode": SHORT, "runs": 1, "extent": extent}
        one = DraftJob(request=DraftRequest((raw,), "tiny-eventgpt", LOOKUP, **options))
        one.work()
        assert one.report.samples[0].shown.endswith(f"({words})")
    with pytest.raises(BadInput, match="extent is 'sensor': choose one of slice, stream"):
        DraftRequest((raw,), "tiny-eventgpt", LOOKUP, extent="sensor")
