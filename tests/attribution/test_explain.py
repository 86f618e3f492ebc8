"""Explanations of tiny models: what is computed, in which order, and what is refused."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from engine import media
from engine.attribution import explain as explaining
from engine.attribution import explained as cells
from engine.attribution import wording
from engine.attribution.explain import explain
from engine.attribution.explained import ExplainOptions, ExplainRequest, ExplainWatcher, Explanation
from engine.attribution.occlusion import shown
from engine.decoding import batched
from engine.demo.demo_dataset import write_dataset
from engine.demo.wordings import DEFAULT_QUESTION
from engine.errors import BadInput, Cancelled, ContextTooLong, NotFinite, OutOfMemory
from engine.machine import device
from engine.media import dataset
from engine.media_options import perturbations, split, window
from engine.models import registry
from engine.models.adapter import Adapter
from engine.storage.explanations import Cost
from engine.types import DecodeConfig, Features, Media, Prepared, RunOptions, Sample
from tests.media.test_events import saved, stream

pytestmark = pytest.mark.loads
SMALL = ExplainOptions(grid=4, side=1, coarse=2, refined=1, batch=3)
CLOSE = 5e-5  # nats per token
WORDS = "a car"
SCENE = 778_020  # of qwen2.5-vl-demo: without a pedestrian, but the test alone names a place


class Followed(ExplainWatcher):
    """Keeps what it is told; cancels after so many encodings."""

    def __init__(self, patience: int = 10**6) -> None:
        self.costs: list[Cost] = []
        self.steps: list[tuple[int, int]] = []
        self.patience = patience

    def planned(self, cost: Cost) -> None:
        self.costs.append(cost)

    def done(self, encodings: int, of: int) -> None:
        self.steps.append((encodings, of))

    def cancelled(self) -> bool:
        return bool(self.steps) and self.steps[-1][0] >= self.patience


@pytest.fixture(params=["tiny-eventgpt", "tiny-video_llava", "tiny-llava"])
def adapter(request: pytest.FixtureRequest, tiny_models: Path) -> Adapter:
    return registry.load(registry.entry(request.param))


@pytest.fixture
def llava(tiny_models: Path) -> Adapter:
    return registry.load(registry.entry("tiny-llava"))


@pytest.fixture
def eventgpt(tiny_models: Path) -> Adapter:
    return registry.load(registry.entry("tiny-eventgpt"))


def asked(
    adapter: Adapter, sample: Sample, words: str = WORDS, options: ExplainOptions = SMALL
) -> ExplainRequest:
    how = RunOptions(decode=DecodeConfig(max_new_tokens=12))
    return ExplainRequest(how.ask(sample, adapter.info.name, "What is it?"), words, (), options)


def said(adapter: Adapter, sample: Sample, options: ExplainOptions = SMALL) -> ExplainRequest:
    """The request for the whole answer of the model."""
    request = asked(adapter, sample)
    ids = explaining.answer_ids(adapter, request.run, ExplainWatcher())
    return replace(request, words=adapter.text(ids), token_ids=ids, options=options)


def by_hand(adapter: Adapter, found: Explanation, shown: Media) -> torch.Tensor:
    """The log-probabilities of the explained words' tokens on these media, by one input alone."""
    run, (first, after) = found.request.run, found.scored
    with torch.inference_mode():
        prepared = adapter.preprocess(shown, run.prompt)
        prompt = adapter.embed(prepared, adapter.encode(prepared))
        ids = found.token_ids[:after]
        logs = batched.forced_logprobs(adapter.decoder, [prompt], ids, torch.tensor(ids)[:, None])
    return logs[0, first:, 0]


def test_each_loss_is_that_of_its_changed_input_alone(adapter: Adapter, sample: Sample) -> None:
    request = said(adapter, sample)
    watcher = Followed()
    found = explain(adapter, request, watcher)
    hidden = shown(request.run, adapter.kind)
    assert found.said and found.words == request.words and len(found.cells) == 8
    close = CLOSE * len(found.token_ids)
    tokens = by_hand(adapter, found, hidden.plain)
    plain = float(tokens.sum())
    assert found.logprob == pytest.approx(plain, abs=close)
    assert math.log(found.chance.probability) == pytest.approx(float(tokens.min()), abs=CLOSE)
    for cell in found.cells:
        changed = float(by_hand(adapter, found, hidden.without(cell.removed)).sum())
        assert cell.nats == pytest.approx(plain - changed, abs=2 * close)
    moments = list(hidden.moments())
    assert [(one.index, one.how) for one in found.moments] == [(m.index, m.how) for m in moments]
    for moment, loss in zip(moments, found.moments, strict=True):
        changed = float(by_hand(adapter, found, hidden.at(moment)).sum())
        assert loss.nats == pytest.approx(plain - changed, abs=2 * close)
    # The control: the losses differ, so that a mixed-up order would be seen.
    assert len({round(cell.nats, 4) for cell in found.cells}) > 4


def test_the_fine_cells_are_those_of_the_strongest_coarse_cell(
    llava: Adapter, sample: Sample
) -> None:
    found = explain(llava, asked(llava, sample))
    strongest = max((cell for cell in found.cells if not cell.fine), key=lambda cell: cell.nats)
    fine = [cell for cell in found.cells if cell.fine]
    left, top, right, bottom = strongest.box
    assert len(fine) == 4
    assert all(left <= c.box[0] and c.box[2] <= right for c in fine)
    assert all(top <= c.box[1] and c.box[3] <= bottom for c in fine)


def test_the_cost_is_stated_before_and_kept(adapter: Adapter, sample: Sample) -> None:
    request, watcher = asked(adapter, sample), Followed()
    stated = explaining.measured_cost(adapter, request)
    found = explain(adapter, request, watcher)
    (planned,) = watcher.costs
    assert planned.seconds is not None and planned.seconds > 0
    for one in (stated, planned):
        assert (one.encodings, one.prefills) == (found.cost.encodings, found.cost.prefills)
    count, of = watcher.steps[-1]
    assert count == of == found.cost.encodings and watcher.steps[0] == (1, of)
    assert found.cost.seconds == pytest.approx(found.ms / 1000)
    assert adapter.info.name in cells.measured_ms


def test_a_dry_run_measures_the_plain_input(llava: Adapter, sample: Sample) -> None:
    found = explaining.measured_cost(llava, asked(llava, sample))
    assert found.seconds is not None and found.encodings == 9


def test_batches_do_not_change_the_losses(adapter: Adapter, sample: Sample) -> None:
    request = said(adapter, sample)
    one, other = (
        explain(adapter, replace(request, options=replace(SMALL, batch=size))) for size in (1, 8)
    )
    close = 2 * CLOSE * len(one.token_ids)
    for a, b in zip(one.cells + one.moments, other.cells + other.moments, strict=True):
        assert a.nats == pytest.approx(b.nats, abs=close)
    assert one.cost.prefills > other.cost.prefills


def test_no_features_are_kept(llava: Adapter, sample: Sample, cache_dir: Path) -> None:
    explain(llava, asked(llava, sample))
    assert not cache_dir.exists() or not any(cache_dir.rglob("*.db"))


def test_words_that_were_not_said_begin_the_answer(llava: Adapter, sample: Sample) -> None:
    found = explain(llava, asked(llava, sample, "zebra zebra"))
    assert not found.said and found.scored == (0, len(found.token_ids))
    assert any("did not say" in note for note in found.notes)


def test_a_place_is_named_for_an_answer_but_not_for_what_the_model_would_not_say(
    tmp_path: Path, cache_dir: Path
) -> None:
    name = "qwen2.5-vl-demo"
    adapter = registry.load(registry.entry(name))
    (sample,) = dataset.read(write_dataset(tmp_path, range(SCENE, SCENE + 1))).samples
    run = RunOptions(cache="off").ask(sample, name, DEFAULT_QUESTION)
    alone, options = tuple(adapter.eos_ids[:1]), ExplainOptions(time=False)
    absent = "A pedestrian is walking on the right side of the road."
    found = explain(adapter, ExplainRequest(run, absent, alone, options))
    assert wording.no_place(found) and "no place is named" in found.chance.sentence
    assert found.chance.p <= wording.BY_CHANCE  # test alone
    answer = explaining.answer_ids(adapter, run, ExplainWatcher())
    said = wording.sentences(adapter.text(answer))
    present = next(text for text in said if "same lane" in text)  # control
    assert not wording.no_place(explain(adapter, ExplainRequest(run, present, answer, options)))


def test_markers_in_words_are_refused(llava: Adapter, sample: Sample) -> None:
    with pytest.raises(BadInput, match="The text to explain contains <image>, which the model"):
        explain(llava, asked(llava, sample, "a <image> of a car"))


def test_ids_of_another_model_are_refused(llava: Adapter, sample: Sample) -> None:
    with pytest.raises(BadInput, match="answer of another model"):
        explain(llava, replace(asked(llava, sample), token_ids=(5, 10**7)))


@pytest.fixture
def raw(tmp_path: Path) -> Sample:
    found = stream(500)
    columns = {"x": found.x, "y": found.y, "t": found.t, "p": found.p}
    return Sample("r", "test", events=saved(tmp_path, **columns))


def test_raw_events_are_dropped_and_drawn_pictures_painted(
    eventgpt: Adapter, sample: Sample, raw: Sample
) -> None:
    one = explain(eventgpt, asked(eventgpt, raw))
    assert one.removal == "events" and len(one.moments) == 10
    painted = explain(eventgpt, asked(eventgpt, sample))
    assert painted.removal == "painted" and len(painted.moments) == 5
    assert any("painted" in note for note in painted.notes)
    assert not any("painted" in note for note in one.notes)
    other = replace(sample, events=raw.events)  # pictures that these events do not draw
    assert shown(asked(eventgpt, other).run, "events").removal == "painted"


def test_the_media_are_those_of_the_run(eventgpt: Adapter, raw: Sample) -> None:
    how = RunOptions(
        window=window("0s+400us"), split=split("time:3"), perturb=perturbations("drop:0.3")
    )
    hidden = shown(replace(asked(eventgpt, raw).run, how=how), "events")
    assert len(hidden.plain.images) == 3 and hidden.raw
    assert hidden.plain.digest == media.load(raw, "events", how).digest
    assert hidden.plain.digest != media.load(raw, "events").digest  # the control


def test_it_can_be_cancelled_between_batches(adapter: Adapter, sample: Sample) -> None:
    watcher = Followed(patience=4)
    request = replace(asked(adapter, sample), token_ids=(7, 8, 9))
    with pytest.raises(Cancelled):
        explain(adapter, request, watcher)
    assert watcher.steps[-1][0] == 4 < watcher.steps[-1][1]


def test_scores_that_are_no_numbers_are_refused(
    llava: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = type(llava).encode_batch

    def broken(self: Adapter, prepared: list[Prepared]) -> list[Features]:
        return [one.changed(lambda t: t * torch.nan) for one in encode(self, prepared)]

    monkeypatch.setattr(type(llava), "encode_batch", broken)
    request = replace(asked(llava, sample), token_ids=(7, 8, 9))
    with pytest.raises(NotFinite, match="tiny-llava: the words' log-probability is not finite"):
        explain(llava, request)


def test_a_batch_that_does_not_fit_is_halved(
    llava: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = replace(asked(llava, sample), token_ids=(7, 8, 9))
    plain, encode = explain(llava, request), type(llava).encode_batch

    def full(self: Adapter, prepared: list[Prepared]) -> list[Features]:
        if len(prepared) > most:
            raise torch.OutOfMemoryError("out of memory")
        return encode(self, prepared)

    monkeypatch.setattr(type(llava), "encode_batch", full)
    most = 2
    found = explain(llava, request)
    assert (plain.request.options.batch, found.request.options.batch) == (3, 2)
    assert "A batch of 3 inputs does not fit in memory: 2 at a time." in found.notes
    assert [one.nats for one in found.cells] == pytest.approx(
        [one.nats for one in plain.cells], abs=1e-3
    )
    most = 0
    with pytest.raises(OutOfMemory):
        explain(llava, request)


def test_on_a_cpu_the_batch_is_estimated(
    llava: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    need = registry.needed(registry.entry(llava.info.name), 1).run
    little = SimpleNamespace(free=int(1.5 * need), total=2 * need)
    monkeypatch.setattr(device, "memory_of", lambda on: little)
    found = explain(llava, replace(asked(llava, sample), token_ids=(7,)))
    assert found.request.options.batch == 1
    assert any("does not fit" in note for note in found.notes)


def test_words_beyond_the_context_are_refused(
    llava: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(llava), "context_limit", 10)
    request = replace(asked(llava, sample), token_ids=(7, 8, 9))
    with pytest.raises(ContextTooLong, match="a context of 10 tokens; the prompt has"):
        explain(llava, request)


def test_a_model_without_a_seam_is_refused(
    llava: Adapter, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llava, "refuses", {"decoupled": "It takes no features."}, raising=False)
    for call in (explain, explaining.measured_cost):
        with pytest.raises(BadInput, match=r"^tiny-llava: It takes no features: choose another"):
            call(llava, asked(llava, sample))
