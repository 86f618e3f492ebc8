"""What a server may do otherwise than the checkpoint: changes to the local run, and their answers.
A change that gives the server's answers is a diagnosis: it was run, with the same weights, and the
unchanged run gives others.  Nothing of a server is read here."""

import copy
import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image as Pillow
from PIL import ImageOps
from transformers import RepetitionPenaltyLogitsProcessor

from engine.models.adapter import Adapter
from engine.quoting import joined
from engine.types import Image, Prepared
from engine.verify.answer_paths import Subject

GREY = (122, 116, 104)  # the mean colour of CLIP's training pictures, as LLaVA's own code pads
SIDE, QUALITY, PENALTY = 512, 75, 1.1  # pixels; of JPEG; llama.cpp's and Ollama's once usual one
MARKS = ("<image>", "<video>", "<event>")  # a picture in a prompt
VICUNA = (
    "A chat between a curious {} and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the {}'s questions."
)
# Prompts of other makers, around the picture's mark and the question.
LLAMA_CPP_PYTHON = f"{VICUNA.format('human', 'human')}\nUSER: {{mark}}{{question}}\nASSISTANT: "
CHATML = "<|im_start|>user\n{mark}\n{question}<|im_end|>\n<|im_start|>assistant\n"
LLAMA_2 = "[INST] {mark}\n{question} [/INST]"
MOST_CHANGES, LIKELIEST = 4, 4  # at once; hypotheses that are tried with one more
SCORED = 3  # samples that decide which are likeliest
MARGIN = 0.1  # nats: two tokens so near may change places in bfloat16
FINER = 8  # times: float16 has three bits more
LIKELY = 3.0  # standard deviations: a draw's log-probability lies so near to what is expected
Images = tuple[Image, ...]


class Inapplicable(Exception):
    """A change that this model or these pictures have no place for."""


class Trial:
    """A local run that a change may alter: its model, its pictures and what stage 2 made."""

    def __init__(self, subject: Subject) -> None:
        self.adapter: Adapter = copy.copy(subject.adapter)
        self.images: Images = subject.media.images
        self.after: list[Callable[[Prepared], Prepared]] = []
        self.draws: tuple[float, int] | None = None  # temperature, and tokens that may be drawn
        self.hooks = ExitStack()

    def reword(self, change: Callable[[str, str], str]) -> None:
        """`change` gets the text around the question, and the mark of a picture in it."""

        def changed(text: str) -> str:
            mark = next((one for one in MARKS if one in text), None)
            if mark is None or (new := change(text, mark)) == text:
                raise Inapplicable
            return new

        self.adapter = self.adapter.reworded(changed)

    def hook(self, module: torch.nn.Module, change: Callable[[Any], Any]) -> None:
        hook = module.register_forward_hook(lambda _module, _inputs, out: change(out))
        self.hooks.enter_context(hook)


class Change(NamedTuple):
    """`words` follow "with"; two changes of one `place` exclude each other; `margin`: nats by
    which two computations with this change may differ."""

    words: str
    place: str
    apply: Callable[[Trial], None]
    margin: float = 0.0


def _prompt(made: str, trial: Trial) -> None:
    """`made` has the places of the own prompt's `text`, or of its mark and question."""
    trial.reword(lambda text, mark: made.format(text=text, mark=mark, question="{question}"))


def _pictures(change: Callable[[Pillow.Image], Pillow.Image], trial: Trial) -> None:
    made = (change(Pillow.fromarray(one)) for one in trial.images)
    trial.images = tuple(np.asarray(one.convert("RGB")) for one in made)


def _frames(change: Callable[[Images], Images], trial: Trial) -> None:
    if len(trial.images) < 2:
        raise Inapplicable
    trial.images = change(trial.images)


def _padded(color: tuple[int, int, int]) -> Callable[[Pillow.Image], Pillow.Image]:
    return lambda one: ImageOps.pad(one, (max(one.size),) * 2, color=color)


def _jpeg(one: Pillow.Image) -> Pillow.Image:
    file = io.BytesIO()
    one.save(file, "JPEG", quality=QUALITY)
    return Pillow.open(file)


def _no_picture(trial: Trial) -> None:
    if type(trial.adapter).generate is not Adapter.generate:
        raise Inapplicable  # its own generate() needs pixels
    trial.adapter.visual_inputs = lambda prepared: {}  # type: ignore[method-assign]

    def blind(prepared: Prepared) -> Prepared:
        ids = prepared.input_ids[:, ~trial.adapter.visual_places(prepared.input_ids[0])]
        return replace(prepared, input_ids=ids, context_tokens=ids.shape[1])

    trial.after.append(blind)


def _no_bos(trial: Trial) -> None:
    def without(prepared: Prepared) -> Prepared:
        bos = trial.adapter.tokenizer.bos_token_id
        if prepared.inputs or bos is None or int(prepared.input_ids[0, 0]) != bos:
            raise Inapplicable
        ids = prepared.input_ids[:, 1:]
        return replace(prepared, input_ids=ids, context_tokens=prepared.context_tokens - 1)

    trial.after.append(without)


def _class_last(trial: Trial) -> None:
    """llama.cpp #25814: the class embedding follows the patches, positions count from the first
    patch, and the row that is dropped as the class row is a patch."""
    embeddings = [
        module
        for tower in trial.adapter.vision_modules()
        for module in tower.modules()
        if hasattr(module, "class_embedding") and hasattr(module, "position_embedding")
    ]
    if not embeddings:
        raise Inapplicable
    for module in embeddings:
        table = module.position_embedding.weight  # type: ignore[union-attr]
        assert isinstance(table, torch.Tensor)
        own = table.data
        table.data = own.roll(1, 0)  # each patch gets the position of the one before
        trial.hooks.callback(setattr, table, "data", own)
        trial.hook(module, lambda out: out.roll(-1, 1))


def _class_kept(trial: Trial) -> None:
    """The row that is dropped as the class row is the last patch."""

    def changed(out: Any) -> Any:
        if not getattr(out, "hidden_states", None):
            raise Inapplicable
        rolled = (one if one is None else one.roll(1, 1) for one in out.hidden_states)
        out.hidden_states = tuple(rolled)
        return out

    trial.hook(trial.adapter.vision_modules()[0], changed)


def _layer(step: int, trial: Trial) -> None:
    config = trial.adapter.model.config
    own = getattr(config, "vision_feature_layer", None)
    if not isinstance(own, int) or own + step == 0:
        raise Inapplicable
    if abs(own + step) > config.vision_config.num_hidden_layers + (own < 0):
        raise Inapplicable  # the tower has no such layer
    config.vision_feature_layer = own + step
    trial.hooks.callback(setattr, config, "vision_feature_layer", own)


def _penalty(trial: Trial) -> None:
    own = trial.adapter.own_generation
    if own.repetition_penalty not in (None, 1.0):
        raise Inapplicable
    trial.adapter.own_generation = copy.deepcopy(own)
    trial.adapter.own_generation.repetition_penalty = PENALTY


def _numbers(dtype: torch.dtype, trial: Trial) -> None:
    """Weights and pictures in another dtype, as if the checkpoint were loaded in it."""
    if trial.adapter.dtype == dtype:
        raise Inapplicable
    trial.adapter.dtype = dtype
    for weight in trial.adapter.model.parameters():
        if weight.is_floating_point():
            trial.hooks.callback(setattr, weight, "data", weight.data)
            try:
                weight.data = weight.data.to(dtype)
            except torch.OutOfMemoryError as error:  # no room for a second copy
                raise Inapplicable from error


def _draws(temperature: float, most: int, trial: Trial) -> None:
    trial.draws = (temperature, most)


CHANGES = (
    Change("no line break after the picture", "prompt",
        lambda trial: trial.reword(lambda text, mark: text.replace(f"{mark}\n", mark))),
    Change("the prompt of llama-cpp-python", "prompt", partial(_prompt, LLAMA_CPP_PYTHON)),
    Change("a system prompt before the question", "prompt",
        partial(_prompt, f"{VICUNA.format('user', 'user')} {{text}}")),
    Change("the ChatML prompt", "prompt", partial(_prompt, CHATML)),
    Change("the Llama-2 prompt", "prompt", partial(_prompt, LLAMA_2)),
    Change("the bare question as its prompt", "prompt", partial(_prompt, "{mark}\n{question}")),
    Change("no BOS token", "bos", _no_bos),
    Change("pictures padded with grey to a square", "picture", partial(_pictures, _padded(GREY))),
    Change("pictures padded with black to a square", "picture",
        partial(_pictures, _padded((0, 0, 0)))),
    Change("pictures cropped to a square", "picture",
        partial(_pictures, lambda one: ImageOps.fit(one, (min(one.size),) * 2))),
    Change(f"pictures scaled to {SIDE} pixels", "picture",
        partial(_pictures, lambda one: ImageOps.contain(one, (SIDE, SIDE)))),
    Change(f"pictures as JPEG of quality {QUALITY}", "picture", partial(_pictures, _jpeg)),
    Change("red and blue exchanged", "picture",
        partial(_pictures, lambda one: Pillow.merge("RGB", one.split()[::-1]))),
    Change("no picture", "picture", _no_picture),
    Change("the frames reversed", "frames", partial(_frames, lambda images: images[::-1])),
    Change("the last frame missing", "frames", partial(_frames, lambda images: images[:-1])),
    Change("only the first frame", "frames", partial(_frames, lambda images: images[:1])),
    Change("the class embedding after the patches", "class", _class_last),
    Change("the class row in place of the last patch", "class", _class_kept),
    Change("one vision layer fewer", "layer", partial(_layer, -1)),
    Change("one vision layer more", "layer", partial(_layer, 1)),
    Change(f"a repetition penalty of {PENALTY}", "sampler", _penalty),
    Change("numbers in bfloat16", "numbers", partial(_numbers, torch.bfloat16), MARGIN),
    Change("numbers in float16", "numbers", partial(_numbers, torch.float16), MARGIN / FINER),
    # The usual draws of Ollama and of llama.cpp.
    Change("draws at temperature 1.0", "draws", partial(_draws, 1.0, 0)),
    Change("draws at temperature 0.8 from 40 tokens", "draws", partial(_draws, 0.8, 40)),
)  # fmt: skip


@contextmanager
def altered(subject: Subject, changes: Sequence[Change]) -> Iterator[tuple[Subject, Trial]]:
    """The subject under these changes, inside the `with`; Inapplicable."""
    trial = Trial(subject)
    with trial.hooks:
        for change in changes:
            change.apply(trial)
        media = replace(subject.media, images=trial.images)
        prepared = trial.adapter.preprocess(media, subject.request.prompt)
        for alter in trial.after:
            prepared = alter(prepared)
        made = copy.copy(subject)
        made.adapter, made.prepared = trial.adapter, prepared
        yield made, trial


class Fit(NamedTuple):
    """How well a local run explains an answer: the mean log-probability of its tokens, the most by
    which it prefers another token to one of them (both in nats), and the share of the tokens that
    it finds as good as any."""

    likelihood: float
    gap: float
    share: float


@dataclass(frozen=True)
class Case:
    """A sample, loaded for the local model, with the server's answer and the local one's ids.

    `ended`: the server's answer was not cut by the limit of tokens; `rounding`: nats that rounding
    explains in the local dtype; `server_gap`: nats by which the server prefers its first different
    token to the local one, by its own word.
    """

    subject: Subject
    theirs: str
    ended: bool
    ours: tuple[int, ...]
    rounding: float
    server_gap: float | None = None

    @cached_property
    def ours_text(self) -> str:
        return self.subject.adapter.text(self.ours)

    @property
    def equal(self) -> bool:
        return self.ours_text == self.theirs

    @cached_property
    def unchanged(self) -> Fit | None:
        """The fit of the checkpoint as published."""
        return self.fit()

    @property
    def tied(self) -> bool:
        """Whether rounding explains the difference; of 16 bits only by the server's own word."""
        told = self.server_gap is not None and self.server_gap <= MARGIN
        margin = max(self.rounding, MARGIN) if told else self.rounding
        return self.unchanged is not None and self.unchanged.gap <= margin

    def text(self, changes: Sequence[Change]) -> str:
        with altered(self.subject, changes) as (subject, _):
            return subject.adapter.text(subject.plain(subject.greedy).ids)

    @torch.inference_mode()
    def fit(self, *changes: Change) -> Fit | None:
        """Of the server's answer under these changes; None if the model computes no logits so."""
        fits = []
        with altered(self.subject, changes) as (subject, trial):
            adapter, prepared = subject.adapter, subject.prepared
            begun = subject.plain(replace(subject.greedy, max_new_tokens=1))
            for text in (self.theirs, f" {self.theirs}"):  # its text came without outer spaces
                ids = adapter.tokenizer(text, add_special_tokens=False)["input_ids"]
                if {*ids} & {*adapter.tokenizer.all_special_ids}:
                    return None  # the text spells a marker
                ids = [*ids, *adapter.eos_ids[: int(self.ended)]]
                logits = adapter.again(begun.embeds, prepared, ids) if ids else None
                if logits is None or len(logits) < len(ids):
                    return None
                scores = _penalised(logits.float(), adapter, prepared, ids).log_softmax(-1)
                chosen = scores[torch.arange(len(ids)), ids]
                gaps = scores.max(-1).values - chosen
                share = float((gaps <= self.rounding).float().mean())
                gap = float(gaps.max())
                if trial.draws:
                    chosen, off = _drawn(scores, ids, *trial.draws)
                    gap = 0.0 if off <= LIKELY else math.inf
                fits.append(Fit(float(chosen.mean()), gap, share))
        return max(fits)


def _penalised(
    logits: torch.Tensor, adapter: Adapter, prepared: Prepared, ids: Sequence[int]
) -> torch.Tensor:
    """Logits [N, vocabulary] after the repetition penalty of the checkpoint, or of a change."""
    penalty = adapter.own_generation.repetition_penalty or 1.0
    if penalty == 1.0:
        return logits
    before, rule = adapter.counted_ids(prepared), RepetitionPenaltyLogitsProcessor(penalty)
    rows = []
    for at in range(len(ids)):
        known = torch.tensor([[*before, *ids[:at]]], device=logits.device)
        rows.append(rule(known, logits[at : at + 1]))
    return torch.cat(rows)


def _drawn(
    scores: torch.Tensor, ids: Sequence[int], temperature: float, most: int
) -> tuple[torch.Tensor, float]:
    """The log-probability of each id if it was drawn, and by how many standard deviations their
    sum lies from what draws of these steps have on average.

    What a draw's log-probability has more than the negative entropy of its step averages zero,
    whatever was drawn before it, so the variances of the steps add.
    """
    scores = scores / temperature
    if most:
        least = scores.topk(min(most, scores.shape[-1])).values[:, -1:]
        scores = scores.masked_fill(scores < least, -math.inf)
    nats = scores.log_softmax(-1)
    chosen, shares = nats[torch.arange(len(ids)), ids], nats.exp()
    finite = nats.nan_to_num(neginf=0.0)
    mean = (shares * finite).sum(-1)
    variance = (shares * (finite - mean[:, None]) ** 2).sum(-1)
    spread = float(variance.sum().clamp(min=1e-12).sqrt())
    return chosen, abs(float((chosen - mean).sum())) / spread


class Tried(NamedTuple):
    """A hypothesis: it gave the server's answer for so many samples in a row, of so many.
    `likelihood`: of the server's answers under it; `share`: of their tokens that it finds as good
    as any; both on a few samples, None if not computed."""

    words: str
    equal: int
    of: int
    likelihood: float | None = None
    share: float | None = None

    @property
    def fits(self) -> bool:
        return self.equal == self.of


def tried(cases: Sequence[Case], doing: Callable[[str], None], sampled: bool) -> Iterator[Tried]:
    """Each change that applies; while none gives all answers, the likeliest ones with one more.
    Likeliest is what makes the server's answers likeliest: of several changes, each by itself
    brings the local model nearer.  `sampled`: equal requests got different answers."""
    known = [one for one in CHANGES if sampled or one.place != "draws"]
    differ = sorted((case for case in cases if not case.equal), key=lambda case: -len(case.theirs))
    ordered = [*differ, *(case for case in cases if case.equal)]
    found = False
    if cut := _cut(ordered):
        yield cut
        found = cut.fits
    likeliest: list[tuple[Change, ...]] = [()]
    for number in range(1, MOST_CHANGES + 1):
        near: dict[tuple[Change, ...], Fit | None] = {}
        # Each with one more change, of a place that it does not change; in the order of `known`.
        extended = {
            tuple(sorted((*changes, one), key=known.index))
            for changes in likeliest
            for one in known
            if one.place not in {change.place for change in changes}
        }
        for changes in sorted(extended, key=lambda changes: [*map(known.index, changes)]):
            doing(f"trying {_words(changes)}")
            with suppress(Inapplicable):
                near[changes] = mean_fit([case.fit(*changes) for case in differ[:SCORED]])
        scored = {changes: fit.likelihood for changes, fit in near.items() if fit is not None}
        likeliest = sorted(scored, key=lambda changes: -scored[changes])[:LIKELIEST]
        for changes in near if number == 1 else likeliest:
            doing(f"answering with {_words(changes)}")
            equal = next((at for at, one in enumerate(ordered) if not _gives(one, changes)), None)
            equal = len(cases) if equal is None else equal
            fit = near[changes]
            about = (fit.likelihood, fit.share) if fit and math.isfinite(fit.gap) else (None, None)
            yield Tried(_words(changes), equal, len(cases), *about)
            found |= equal == len(cases)
        if found or not likeliest:
            return


def _words(changes: Sequence[Change]) -> str:
    return joined(change.words for change in changes)


def mean_fit(fits: Sequence[Fit | None]) -> Fit | None:
    """The mean over samples; None if one has none."""
    known = [fit for fit in fits if fit is not None]
    return Fit(*map(fmean, zip(*known, strict=True))) if len(known) == len(fits) > 0 else None


def _gives(case: Case, changes: Sequence[Change]) -> bool:
    """Whether the changed model gives this answer, or finds each of its tokens as good as any."""
    fit, margin = case.fit(*changes), max(case.rounding, *(one.margin for one in changes))
    return (fit is not None and fit.gap <= margin) or case.text(changes) == case.theirs


def _cut(cases: Sequence[Case]) -> Tried | None:
    """The local answer, ended after the tokens of the server's longest shortened one."""
    limit = 0
    for case in cases:
        if not case.equal:
            text, ends = case.subject.adapter.text, range(1, len(case.ours))
            cuts = (end for end in ends if text(case.ours[:end]) == case.theirs)
            limit = max(limit, next(cuts, 0))
    if not limit:
        return None
    equal = sum(case.subject.adapter.text(case.ours[:limit]) == case.theirs for case in cases)
    return Tried(f"answers cut after {limit} tokens", equal, len(cases))
