"""Adapter: what the pipeline asks of every family, and what all of them share.

Boundary: stages 2 to 4 of one loaded model.  An adapter knows its prompt, its pixels and its rows;
it knows neither files, clocks nor caches.  The rows it caches are final: after projector, adaptor
and pooling, ready to stand between the prompt's embeddings, so that nothing is applied twice.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
import transformers
from transformers import AutoTokenizer, GenerationConfig
from transformers.generation import BaseStreamer, StoppingCriteriaList
from transformers.utils import logging as transformers_logging

from engine import device as devices
from engine import settings
from engine.decode import Decoder
from engine.errors import ContextTooLong, ModelUnavailable
from engine.models import checkpoint
from engine.models.checkpoint import ModelEntry
from engine.prompts import refuse_markers
from engine.types import FeatureSpec, Image, Media, MediaKind, ModelInfo, Prepared

transformers_logging.disable_progress_bar()
# A broken folder makes transformers raise whatever its parts raise: validation errors of its own,
# UnpicklingError, KeyError ...  All mean the same to a user, and the cause is chained.
CANNOT_LOAD = (Exception,)


class Adapter(ABC):
    """One loaded model.  Subclasses name the classes, the prompt and the order of operations."""

    kind: ClassVar[MediaKind]
    prompt: ClassVar[str]  # holds {question} once

    def __init__(
        self,
        info: ModelInfo,
        model: Any,
        tokenizer: Any,
        image_processor: Any,
        notes: Sequence[str],
    ) -> None:
        self.info = info
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.image_processor = image_processor
        self.notes = tuple(notes)
        self.device = torch.device(info.device)
        self.dtype: torch.dtype = model.dtype
        self.runs = 0
        self.eos_ids = _eos_ids(model, tokenizer)
        self.model.generation_config = GenerationConfig(eos_token_id=list(self.eos_ids))
        self._code = code_digest()
        self._processor = _digest(
            json.dumps([type(image_processor).__name__, image_processor.to_dict()], default=str)
        )

    @classmethod
    @abstractmethod
    def load(cls, entry: ModelEntry, folder: Path) -> Adapter:
        """The model of this folder on the device of the settings, or ModelUnavailable."""

    @abstractmethod
    def prompt_ids(self, question: str, images: int) -> tuple[list[int], int]:
        """The prompt's token ids, and its length once the visual rows are in place."""

    @abstractmethod
    def encode(self, prepared: Prepared) -> torch.Tensor:
        """Stage 3: pixels -> visual rows [V, hidden]."""

    @abstractmethod
    def embed(self, prepared: Prepared, rows: torch.Tensor) -> torch.Tensor:
        """Rows [V, hidden] between the prompt's embeddings: [1, context, hidden]."""

    @abstractmethod
    def generate(self, prepared: Prepared, **options: Any) -> torch.Tensor:
        """The model's own generate() on pixels.  Returns what the family returns."""

    def generate_from_features(
        self, prepared: Prepared, rows: torch.Tensor, **options: Any
    ) -> torch.Tensor:
        """The model's own generate() on rows [V, hidden], without pixels: new ids only, [1, N]."""
        embeds = self.embed(prepared, rows)
        mask = torch.ones(embeds.shape[:2], dtype=torch.long, device=embeds.device)
        out: torch.Tensor = self.model.generate(
            inputs_embeds=embeds, attention_mask=mask, **options
        )
        return out

    @abstractmethod
    def vision_modules(self) -> list[torch.nn.Module]:
        """The modules whose time is stage 3, none inside another."""

    @property
    @abstractmethod
    def decoder(self) -> Decoder: ...

    @property
    @abstractmethod
    def text_config(self) -> Any: ...

    @property
    def context_limit(self) -> int:
        """Tokens the language model has positions for."""
        return int(self.text_config.max_position_embeddings)

    def preprocess(self, media: Media, question: str) -> Prepared:
        """Stage 2: the checkpoint's own image processor, and the family's prompt."""
        refuse_markers(question, tuple(self.tokenizer.all_special_tokens))
        ids, context = self.prompt_ids(question, len(media.images))
        pixels = self.pixels(media.images).to(self.device, self.dtype)
        return Prepared(
            pixels=pixels,
            input_ids=torch.tensor([ids], device=self.device),
            digest=_digest(media.digest + self._processor),
            context_tokens=context,
        )

    def pixels(self, images: Sequence[Image]) -> torch.Tensor:
        """T images [H, W, 3] -> [T, 3, S, S] float32."""
        out = self.image_processor(
            images=list(images), return_tensors="pt", input_data_format="channels_last"
        )
        pixels: torch.Tensor = out["pixel_values"]
        return pixels

    def check_context(self, prepared: Prepared, max_new_tokens: int) -> None:
        """ContextTooLong unless prompt, visual rows and new tokens have positions."""
        room = self.context_limit - prepared.context_tokens
        if max_new_tokens <= room:
            return
        fix = f"set max_new_tokens to at most {room:,}" if room > 0 else "shorten the question"
        raise ContextTooLong(
            f"{self.info.name} has a context of {self.context_limit:,} tokens; this prompt takes "
            f"{prepared.context_tokens:,} and max_new_tokens is {max_new_tokens:,}: {fix}."
        )

    def feature_spec(self, prepared: Prepared) -> FeatureSpec:
        """What the rows of `prepared` depend on; the question is not among it."""
        return FeatureSpec(
            model=self.info.family,
            checkpoint=self.info.digest,
            processor=self._processor,
            dtype=self.info.dtype,
            device=self.device.type,
            code=self._code,
            media=prepared.digest,
        )

    def text(self, ids: Sequence[int]) -> str:
        """New token ids as text, special tokens left out."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()


def info_of(entry: ModelEntry, folder: Path) -> ModelInfo:
    """The entry with the digest of its files and the device it will run on."""
    revision = folder.name if entry.folder is None else entry.revision
    return ModelInfo(
        name=entry.name,
        family=entry.family,
        checkpoint=entry.checkpoint,
        revision=revision,
        dtype=entry.dtype,
        demo=entry.demo,
        digest=checkpoint.digest(folder, entry.name, settings.load().hashes_file),
        device=str(devices.choose()),
    )


def load_weights(model_class: Any, info: ModelInfo, folder: Path) -> Any:
    """The model with every weight from the folder, or ModelUnavailable; never a random weight."""
    torch.set_num_threads(settings.load().threads)
    try:
        _refuse_larger_than_its_weights(model_class, info, folder)
        model, report = model_class.from_pretrained(
            folder,
            dtype=getattr(torch, info.dtype),
            local_files_only=True,
            output_loading_info=True,
        )
        refuse_incomplete(info.name, folder, report)
        return model.to(info.device)
    except ModelUnavailable:
        raise
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise ModelUnavailable(
            f"{info.name} does not fit into the memory of {info.device} ({_first_line(error)}): "
            "close other programs, or choose a smaller dtype or model."
        ) from error
    except CANNOT_LOAD as error:
        raise ModelUnavailable(
            f"{info.name}: the weights in {folder} cannot be loaded ({_first_line(error)}): "
            "copy or download the checkpoint again."
        ) from error


def _refuse_larger_than_its_weights(model_class: Any, info: ModelInfo, folder: Path) -> None:
    """A config.json of another model would be filled up with random weights, and with memory."""
    config = model_class.config_class.from_pretrained(folder, local_files_only=True)
    with torch.device("meta"):
        described = sum(weight.numel() for weight in model_class(config).parameters())
    held = checkpoint.weight_count(folder, info.name)
    if described > held * 1.5:
        raise ModelUnavailable(
            f"{info.name}: {folder / 'config.json'} describes {described:,} weights and the files "
            f"hold {held:,}: copy both from one checkpoint."
        )


def refuse_incomplete(name: str, folder: Path, report: dict[str, Any]) -> None:
    """ModelUnavailable if loading left a parameter without a weight of its own."""
    absent = sorted(report["missing_keys"])
    wrong = sorted(str(key) for key in report["mismatched_keys"])
    if absent or wrong:
        what, keys = ("lacks", absent) if absent else ("has a wrong shape for", wrong)
        raise ModelUnavailable(
            f"{name}: the checkpoint in {folder} {what} {len(keys)} weights ({keys[0]}, ...): "
            "it is not run with random ones; copy or download it again."
        )


def load_tokenizer(info: ModelInfo, folder: Path) -> Any:
    """The checkpoint's tokenizer, or ModelUnavailable."""
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except CANNOT_LOAD as error:
        raise unreadable(info, folder, "tokenizer", error) from error


def unreadable(info: ModelInfo, folder: Path, what: str, error: Exception) -> ModelUnavailable:
    return ModelUnavailable(
        f"{info.name}: the {what} in {folder} cannot be read ({_first_line(error)}): copy it again."
    )


def code_digest() -> str:
    """Changes with this package's own model code and with the libraries that compute for it."""
    total = hashlib.blake2b(digest_size=8)
    for file in sorted(Path(__file__).parent.glob("*.py")):
        total.update(file.read_bytes())
    return f"{total.hexdigest()}-torch{torch.__version__}-transformers{transformers.__version__}"


def generate_options(
    config: GenerationConfig, streamer: BaseStreamer | None, stopping: StoppingCriteriaList | None
) -> dict[str, Any]:
    """Keyword arguments of generate(), the same for every family."""
    return {"generation_config": config, "streamer": streamer, "stopping_criteria": stopping}


def _eos_ids(model: Any, tokenizer: Any) -> tuple[int, ...]:
    found = getattr(model.generation_config, "eos_token_id", None)
    if found is None:
        found = tokenizer.eos_token_id
    ids = found if isinstance(found, list) else [found]
    if not ids or not all(isinstance(one, int) for one in ids):
        raise ModelUnavailable(
            f"The end-of-answer token of {model.name_or_path} is {found!r}: "
            "correct eos_token_id in its generation_config.json."
        )
    return tuple(ids)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
