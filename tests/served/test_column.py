"""A served column: what is sent, what a result says of it, and what it does not pretend to know."""

import base64
import io
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engine import media
from engine.errors import BadInput, Cancelled, ModelUnavailable, SettingsError
from engine.jobs.run_job import RunJob
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.pipeline import Watcher
from engine.report import answer_part
from engine.served import column
from engine.storage.result_rows import ResultRow
from engine.types import DecodeConfig, RunOptions, RunRequest, RunResult, Sample
from tests.served.fake_server import WORDS, FakeServer, in_turn, piece, says, streams, whole

TEXT = "".join(WORDS)
Answered = Callable[..., RunResult]


@pytest.fixture
def entry(fake: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelEntry:
    """A served model in a models.toml of its own."""
    return named(tmp_path, monkeypatch, f'server = "{fake.url}"\nmodel = "served-model"\n')


def named(folder: Path, patch: pytest.MonkeyPatch, lines: str) -> ModelEntry:
    file = folder / "models.toml"
    file.write_text(f'[[model]]\nname = "ours"\n{lines}', encoding="utf-8")
    patch.setenv("STAGESCOPE_MODELS", str(file))
    return registry.entry("ours")


def request(sample: Sample, **how: object) -> RunRequest:
    return RunRequest(sample, "ours", "What is ahead?", RunOptions(**how))  # type: ignore[arg-type]


@pytest.fixture
def answer(entry: ModelEntry, sample: Sample) -> Answered:
    """Asks the entry about the sample, with these options of a run."""
    return lambda **how: column.answer(entry, request(sample, **how))


def test_the_request_has_every_picture_without_loss_and_every_sampler(
    fake: FakeServer, entry: ModelEntry, sample: Sample
) -> None:
    for kind in ("image", "events"):
        shown = replace(entry, kind=kind)
        column.answer(shown, request(sample))
        (turn,) = fake.asked[-1]["messages"]
        *pictures, question = turn["content"]
        assert turn["role"] == "user" and question == {"type": "text", "text": "What is ahead?"}
        sent = [one["image_url"]["url"].partition(",")[2] for one in pictures]
        read = [np.asarray(Image.open(io.BytesIO(base64.b64decode(one)))) for one in sent]
        wanted = media.load(sample, kind, RunOptions()).images
        assert len(read) == len(wanted) == (5 if kind == "events" else 1)
        assert all(np.array_equal(one, other) for one, other in zip(read, wanted, strict=True))
    body = {key: value for key, value in fake.asked[-1].items() if key != "messages"}
    assert len(body.pop("cache_salt")) == 16  # of vLLM
    assert body == {
        "model": "served-model", "stream": True, "max_tokens": 256, "temperature": 0.0,
        "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0,
        "stream_options": {"include_usage": True},
    }  # fmt: skip
    column.answer(entry, request(sample, decode=DecodeConfig(9, temperature=0.5, seed=3)))
    assert {"temperature": 0.5, "seed": 3, "max_tokens": 9}.items() <= fake.asked[-1].items()


def test_a_clip_is_sent_as_its_file_where_the_entry_says_so(
    fake: FakeServer, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = f'server = "{fake.url}"\nmodel = "m"\nclip = true\n'
    entry = named(tmp_path, monkeypatch, f'{lines}shows = "video"\n')
    file = tmp_path / "clip.mp4"
    file.write_bytes(b"a whole clip")
    clip = replace(sample, mp4=file)
    result = column.answer(entry, request(clip))
    part, _ = fake.asked[-1]["messages"][0]["content"]
    sent = part["video_url"]["url"].removeprefix("data:video/mp4;base64,")
    assert base64.b64decode(sent) == file.read_bytes()
    assert part["type"] == "video_url" and column.ITS_FRAMES in result.notes
    with pytest.raises(BadInput, match="is no whole clip: leave clip out"):
        column.answer(entry, request(sample))
    monkeypatch.setattr(column, "MOST_CLIP", 9)
    with pytest.raises(BadInput, match="more than the 9 bytes"):
        column.answer(entry, request(clip))
    with pytest.raises(SettingsError, match="has clip and is shown no video"):
        named(tmp_path, monkeypatch, lines)


def test_the_times_are_those_that_can_be_seen(fake: FakeServer, answer: Answered) -> None:
    fake.answer = streams(*whole(), pause_s=0.02)
    result = answer()
    assert (result.generation.text, result.generation.stop) == (TEXT, "eos")
    assert (result.new_tokens, result.generation.prompt_tokens, result.backend) == (9, 52, "server")
    names = ["load", "preprocess", "server", "server.upload", "server.first", "server.rest"]
    assert [span.name for span in result.spans] == names  # no vision, no prefill
    assert result.served is not None and result.ttft_ms == result.served.arrivals_ms[0]
    assert result.tpot_ms == pytest.approx((result.total_ms - result.ttft_ms) / 8)
    at_server, *parts = (span.ms for span in result.spans[2:])
    assert sum(parts) == pytest.approx(at_server) and min(parts) >= 0
    assert 0 <= result.unaccounted_ms < result.total_ms - at_server
    assert not result.cold and not result.generation.token_ids


@pytest.mark.parametrize(("counted", "gaps"), [(9, 0), (5, 3), (4, 3), (None, 0)])
def test_a_piece_is_a_token_only_if_the_server_counts_as_many(
    counted: int | None, gaps: int, fake: FakeServer, answer: Answered
) -> None:
    """WORDS has four; a fifth token may be the end, which has no text."""
    fake.answer = streams(*whole(usage={"completion_tokens": counted}), pause_s=0.02)
    row = ResultRow.from_result(answer())
    assert row.served is not None and len(row.served.token_ms) == (4 if gaps else 0)
    (shown,) = answer_part.answers([("Ours", row)])
    moments, letters = map(accumulate, shown["pieces"])  # as they arrived
    assert [*letters] == [*row.served.text_ends]
    assert [*moments] == [round(10 * at) for at in row.served.arrivals_ms]
    assert "upload and queue" in shown["stages"]
    assert "upload and queue" in [bar[0] for bar in shown["bars"]]


@pytest.mark.parametrize("at_once", [True, False])
def test_text_that_came_at_once_has_no_time_per_token(
    at_once: bool, fake: FakeServer, answer: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.answer = streams(*whole())
    # on a busy machine even one piece of data may be read in two
    monkeypatch.setattr("engine.types.AT_ONCE_MS", 1e9 if at_once else 0.0)
    result = answer()
    assert (result.tpot_ms is None) is (column.AT_ONCE in result.notes) is at_once


def test_what_a_server_cannot_do_is_said(
    fake: FakeServer, entry: ModelEntry, answer: Answered
) -> None:
    with pytest.raises(BadInput, match="cannot be made to answer with 8 tokens"):
        answer(decode=DecodeConfig(8, 8))
    fake.answer = in_turn(says(429, "", Retry_After="0"), streams(*whole()))
    found = answer(mode="hooked").notes
    assert column.RETRIED.format(2) in found and column.NO_MODES.format("hooked") in found
    assert column.MAY_BE_CACHED not in found  # vLLM takes a salt
    for ask in (registry.load, registry.check, registry.needed):
        with pytest.raises((BadInput, ModelUnavailable), match="is a server"):
            ask(entry)
    with pytest.raises(BadInput, match="decides its dtype: leave it out"):
        registry.entry("ours@float16")
    assert registry.entry("ours@events").kind == "events"


def test_a_job_streams_the_text_and_a_cancel_keeps_it(
    fake: FakeServer, entry: ModelEntry, sample: Sample
) -> None:
    fake.answer = streams(*[piece("word ")] * 10_000, pause_s=0.005)
    job, seen = RunJob(request=request(sample)), list[str]()
    take = job.piece

    def piece_of(text: str, ms: float) -> None:
        take(text, ms)
        view = job.view()
        assert view.ttft_ms and not view.new_tokens and view.progress[-1].name == "server"
        seen.append(view.text)
        if len(seen) == 3:
            job.cancel()

    job.piece = piece_of  # type: ignore[method-assign]
    job.work()
    assert job.state == "cancelled" and job.result is not None and len(set(seen)) > 2
    assert job.result.generation.text == job.view().text == seen[-1].strip()
    stopped = Watcher()
    stopped.cancelled = lambda: True  # type: ignore[method-assign]
    with pytest.raises(Cancelled):
        column.answer(entry, request(sample), stopped)


HERE = 'server = "http://a/v1"\nmodel = "m"\n'
WRONG = {
    "has the weights 'none'": f'{HERE}weights = "none"\n',
    "has the weights 'ours'": f'{HERE}weights = "ours"\n',
    "has server and checkpoint": f'{HERE}checkpoint = "./x"\n',
    "has a server and no model": 'server = "http://a/v1"\n',
    "has model and no server": 'checkpoint = "./x"\nmodel = "m"\n',
    "has no checkpoint": 'label = "x"\n',
    "'ftp://a' is no address of a server": 'server = "ftp://a"\nmodel = "m"\n',
    "A server with an @ is no address": 'server = "http://me:secret@a/v1"\nmodel = "m"\n',
    "is no entry": f'{HERE}api_key_env = "sk-secret"\n',
    "'timeout_s'": f"{HERE}timeout_s = 0\n",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_entries_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    with pytest.raises(SettingsError) as found:
        named(tmp_path, monkeypatch, WRONG[words])
    assert words in str(found.value) and "secret" not in str(found.value)
