"""Adapter: the interface of every model family, and the code that all families share.

An adapter knows stages 2 to 4 of one loaded model, but no files, clocks or caches.  Its features
are final: after projector, adaptor and pooling, ready to meet the prompt's embeddings, so that
nothing is applied twice.  What a family cannot do, or what is not proved to give the model's own
answer, stands in `refuses` as a sentence; nothing is refused without one.
"""

from __future__ import annotations

import copy
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
import transformers
from transformers import GenerationConfig

from engine.decoding import compiled, generation_rules
from engine.decoding.compiled import CompiledStep
from engine.decoding.decode import Decoder, Prompt
from engine.decoding.generation_rules import AnswerRules
from engine.errors import BadInput
from engine.models import auto_processor, families, loading
from engine.models.checkpoint import ModelEntry
from engine.models.families import FAMILIES
from engine.prompts import refuse_markers
from engine.types import (
    DecodeConfig,
    Features,
    FeatureSpec,
    Image,
    Media,
    MediaKind,
    ModelInfo,
    Prepared,
    RunRequest,
)

Way = Literal["decoupled", "compiled", "batch", "draft"]


@dataclass(eq=False)
class InUse:
    """What changes while a model is in memory, shared by all variants of it."""

    runs: int = 0
    compiled: CompiledStep | None = None  # created at its first use


class Adapter(ABC):
    """One loaded model.  Subclasses define the classes, the prompt and the order of operations.
    `kind`: what the model is shown; the class has what its family usually gets."""

    kind: MediaKind
    prompt: ClassVar[str]  # holds {question} once
    tower_takes_pictures: ClassVar[bool] = True  # False: it takes tiles or patches of them
    refuses: Mapping[Way, str] = {}  # a way that this model does not offer, and why

    def __init__(
        self,
        info: ModelInfo,
        model: Any,
        tokenizer: Any,
        image_processor: Any,
        notes: Sequence[str],
    ) -> None:
        self.info = info
        self.kind = info.shows or type(self).kind
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.image_processor = image_processor
        self.device = torch.device(info.device)
        self.dtype: torch.dtype = model.dtype
        self.use = InUse()
        self.own_generation: GenerationConfig = model.generation_config  # the checkpoint's own
        stated = getattr(self.own_generation, "eos_token_id", None)
        stated = tokenizer.eos_token_id if stated is None else stated
        ids = stated if isinstance(stated, list) else [stated]
        _refuse_strange(info, model, ids or [None])
        self.eos_ids: tuple[int, ...] = tuple(ids)
        settings = vars(self.own_generation)
        families.refuse_generation(info.name, settings)
        self.rules = generation_rules.followed(settings)
        _refuse_strange(info, model, generation_rules.ids(self.rules))
        self.notes = (*notes, *generation_rules.notes(settings))
        self.model.generation_config = GenerationConfig(eos_token_id=list(self.eos_ids))
        code = hashlib.blake2b(digest_size=8)  # of this package's model code
        for file in sorted(Path(__file__).parent.glob("*.py")):
            code.update(file.read_bytes())
        libraries = f"torch{torch.__version__}-transformers{transformers.__version__}"
        self.code = f"{code.hexdigest()}-{libraries}"
        self._processor = self.processor_digest()

    def remade(self, info: ModelInfo, notes: Sequence[str] = ()) -> Adapter:
        made = copy.copy(self)
        made.info, made.device = info, torch.device(info.device)
        made.kind, made.notes = info.shows or type(self).kind, (*self.notes, *notes)
        return made

    def reworded(self, change: Callable[[str], str]) -> Adapter:
        made = copy.copy(self)
        made.prompt = change(self.prompt)  # type: ignore[misc]
        return made

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of its weights on the device; counted once, because pages ask for each variant."""
        return sum(part.nbytes for part in (*self.model.parameters(), *self.model.buffers()))

    def processor_digest(self) -> str:
        made = self.image_processor
        return _digest(json.dumps([type(made).__name__, made.to_dict()], default=str))

    @classmethod
    @abstractmethod
    def load(cls, entry: ModelEntry, folder: Path) -> Adapter:
        """Loads the folder's model on the device in the settings, or raises ModelUnavailable."""

    @property
    @abstractmethod
    def visual_id(self) -> int:
        """The id that stands for visual rows in a prompt."""

    @abstractmethod
    def prompt_ids(self, question: str, images: int) -> tuple[list[int], int]:
        """The prompt's token ids, and its length once the visual rows are in place."""

    def encode(self, prepared: Prepared) -> Features:
        """Stage 3: pixels -> features.  A family defines this or `encode_batch`."""
        return self.encode_batch([prepared])[0]

    def visual_rows(self, images: int) -> int:
        """Rows of so many pictures, of a family whose configuration gives their number."""
        tower, rows = self.info.tower, FAMILIES[self.info.family].rows
        assert tower is not None and rows is not None
        return rows(tower, images, vars(self.model.config))

    def see(self, prepared: Prepared) -> None:
        """Encodes the pictures once and drops the result."""
        self.encode(prepared)

    def encode_batch(self, prepared: Sequence[Prepared]) -> list[Features]:
        """Stage 3 of several samples: the features of each, in one pass if possible."""
        return [self.encode(one) for one in prepared]

    @abstractmethod
    def embed(self, prepared: Prepared, features: Features) -> Prompt:
        """What the decoder takes for the prefill: the prompt with its features in place."""

    def visual_inputs(self, prepared: Prepared) -> dict[str, Any]:
        """What the model's own generate() takes besides the ids, as it calls it."""
        return {**prepared.inputs, prepared.pixel_name: prepared.pixels}

    def generate(self, prepared: Prepared, **options: Any) -> torch.Tensor:
        """The model's own generate() on pixels.  Returns what the family returns."""
        out: torch.Tensor = self.model.generate(
            input_ids=prepared.input_ids,
            attention_mask=torch.ones_like(prepared.input_ids),
            **self.visual_inputs(prepared),
            **options,
        )
        return out

    def counted_ids(self, prepared: Prepared) -> list[int]:
        """The prompt's ids as the model's own generate() counts them for a repetition penalty."""
        ids: list[int] = prepared.input_ids[0].tolist()
        return ids

    def rules_for(self, prepared: Prepared, config: DecodeConfig) -> AnswerRules:
        counted, context = partial(self.counted_ids, prepared), prepared.context_tokens
        return AnswerRules(config, self.eos_ids, self.rules, counted, context, self.device)

    def generate_from_features(
        self, prepared: Prepared, features: Features, **options: Any
    ) -> torch.Tensor:
        """The model's own generate() on features, without pixels: new ids only, [1, N]."""
        embeds: Any = self.embed(prepared, features)
        mask = torch.ones(embeds.shape[:2], dtype=torch.long, device=embeds.device)
        ids = torch.tensor([self.counted_ids(prepared)], dtype=torch.long, device=embeds.device)
        out: torch.Tensor = self.model.generate(
            input_ids=ids, inputs_embeds=embeds, attention_mask=mask, **options
        )
        return out[:, ids.shape[1] :]

    @abstractmethod
    def vision_modules(self) -> list[torch.nn.Module]:
        """The modules whose time is stage 3, none inside another."""

    @property
    def decoder(self) -> Decoder:
        model, head = self.model.get_decoder(), self.model.get_output_embeddings()
        return Decoder(model, head, self.text_config, self.eos_ids)

    @property
    def text_config(self) -> Any:
        return self.model.config.get_text_config()

    @property
    def context_limit(self) -> int:
        return int(self.text_config.max_position_embeddings)

    def preprocess(self, media: Media, question: str) -> Prepared:
        """Stage 2: the pixels of the checkpoint's image processor, and the family's prompt."""
        refuse_markers(question, tuple(self.tokenizer.all_special_tokens))
        ids, context = self.prompt_ids(question, len(media.images))
        placed = torch.tensor([ids], device=self.device)
        pixels = self.pixels(media.images).to(self.device, self.dtype)
        return Prepared(pixels, placed, self.input_digest(media), context)

    def input_digest(self, media: Media) -> str:
        return _digest(media.digest + self._processor)

    def shown(self, media: Media) -> str:
        return media.shown

    def pixels_of(self, media: Media) -> torch.Tensor:
        """The pixels of all pictures of a sample, as preprocess() makes them."""
        return self.pixels(media.images)

    def pixels(self, images: Sequence[Image]) -> torch.Tensor:
        """T images [H, W, 3] -> [T, 3, S, S] float32."""
        return auto_processor.values(self.image_processor, images)

    def visual_places(self, ids: torch.Tensor) -> torch.Tensor:
        return ids == self.visual_id

    def question_ids(self, prepared: Prepared) -> torch.Tensor:
        """The ids after the last visual row, [1, Q]: the only part that a question changes."""
        places = self.visual_places(prepared.input_ids[0]).nonzero()
        return prepared.input_ids[:, int(places[-1]) + 1 :]

    def again(self, plain_embeds: torch.Tensor, prepared: Prepared, ids: Sequence[int]) -> Any:
        """Logits [N, vocabulary] that precede N new ids, computed in one pass; fewer rows, or None,
        if the model cannot compute all of them.  `plain_embeds` [1, context, hidden]: the language
        model's input in plain generate()."""
        tokens = torch.tensor([list(ids[:-1])], dtype=torch.long, device=self.device)
        embeds = torch.cat([plain_embeds, self.model.get_input_embeddings()(tokens)], dim=1)
        decoder = self.decoder
        hidden = decoder.language_model(inputs_embeds=embeds, use_cache=False).last_hidden_state
        return decoder.head(hidden[0, -len(ids) :])

    def step_for(self, request: RunRequest) -> CompiledStep | None:
        """The compiled step if the request asks for one; it is compiled at its first use."""
        wanted = compiled.wanted(request.how.decode, self.device)
        if not wanted or request.how.mode == "hooked" or "compiled" in self.refuses:
            return None
        if self.use.compiled is None:
            self.use.compiled = CompiledStep(self.decoder)
        return self.use.compiled

    def compile_ahead(self, request: RunRequest) -> float:
        """Compiles what the request needs; returns the seconds this took, 0.0 if there was nothing.
        The prompt's length is computed from the question.  If it is wrong, the run compiles."""
        if (step := self.step_for(request)) is None:
            return 0.0
        refuse_markers(request.prompt, tuple(self.tokenizer.all_special_tokens))
        _, context = self.prompt_ids(request.prompt, self.info.images or 1)
        return step.ready(min(context + request.how.decode.max_new_tokens, self.context_limit))

    def feature_spec(self, prepared: Prepared) -> FeatureSpec:
        """What the rows of `prepared` depend on; the question is not part of it."""
        return FeatureSpec(
            model=self.info.family,
            checkpoint=self.info.digest,
            processor=self._processor,
            dtype=self.info.dtype,
            device=self.device.type,
            code=self.code,
            media=prepared.digest,
            quantization=self.info.quantization,
        )

    def takes(self, prepared: Prepared, features: Features) -> bool:
        """Whether cached features have the shape that this prompt needs: rows [V, hidden]."""
        words = int((prepared.input_ids != self.visual_id).sum())
        shape = (prepared.context_tokens - words, int(self.text_config.hidden_size))
        rows = features.tensors.get("rows")
        return rows is not None and tuple(rows.shape) == shape and rows.is_floating_point()

    def text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        pieces = self.tokenizer.convert_ids_to_tokens(list(ids))
        return [str(piece).replace("\u2581", " ").replace("Ġ", " ") for piece in pieces]


def vocabulary_digest(tokenizer: Any) -> str:
    """A digest of the ids of all pieces that an answer can contain: without the markers that a
    family adds to its prompt (<image>, <ev_patch> ...), which differ."""
    own = {tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token}
    added = tokenizer.added_tokens_decoder.values()
    markers = {str(token) for token in added if token.special} - own
    pieces = tokenizer.get_vocab().items()
    kept = sorted((place, piece) for piece, place in pieces if piece not in markers)
    return hashlib.blake2b(json.dumps(kept).encode(), digest_size=16).hexdigest()


def refuse_other_vocabulary(draft: Adapter, target: Adapter) -> None:
    """BadInput unless both share the vocabulary and the ids that end an answer."""
    one, two = vocabulary_digest(draft.tokenizer), vocabulary_digest(target.tokenizer)
    refused = f"{draft.info.name} cannot draft for {target.info.name}"
    if one != two:
        raise BadInput(
            f"{refused}: their vocabularies differ ({one[:8]} and {two[:8]}), so their token ids "
            "do not match; choose models that share a tokenizer, or lookup."
        )
    if set(draft.eos_ids) != set(target.eos_ids):
        raise BadInput(
            f"{refused}: their answers end with different ids ({draft.eos_ids} and "
            f"{target.eos_ids}); choose another draft or lookup."
        )


def _refuse_strange(info: ModelInfo, model: Any, ids: Sequence[Any]) -> None:
    known = model.get_input_embeddings().num_embeddings
    strange = [one for one in ids if not isinstance(one, int) or not 0 <= one < known]
    what = f"its generation_config.json names the token {strange[:1]}, but it has {known:,} tokens"
    loading.require(info, not strange, what)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()
