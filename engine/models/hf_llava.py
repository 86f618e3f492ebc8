"""What LLaVA-1.5 and Video-LLaVA share: one placeholder token in the prompt per visual row.

Boundary: everything except the classes, the placeholder and the encoding call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from engine.decoding.decode import Decoder
from engine.errors import ModelUnavailable
from engine.models import processors, templates
from engine.models.adapter import Adapter
from engine.models.checkpoint import ModelEntry
from engine.models.loading import (
    info_of,
    load_tokenizer,
    load_weights,
    refuse_larger_tokenizer,
)
from engine.models.shape import Form
from engine.types import Features, Prepared

OWN_PROMPT = "The prompt comes from the checkpoint's chat template."


class PlaceholderAdapter(Adapter):
    """A transformers model whose prompt holds one placeholder token per visual row."""

    model_class: ClassVar[Any]
    placeholder: ClassVar[str]
    markers: ClassVar[tuple[str, ...]]  # tokens that sentencepiece lacks, in the order of their ids
    one_each = False  # whether each picture has its own placeholder in the prompt
    has_template = False  # whether the prompt comes from the checkpoint's chat template

    @classmethod
    def load(cls, entry: ModelEntry, folder: Path, form: Form) -> Adapter:
        info = info_of(entry, folder, form)
        tokenizer = load_tokenizer(info, folder)
        if not (folder / "tokenizer.json").is_file():
            _add_absent(tokenizer, cls.markers)
        processor = processors.load(info, folder)
        model, info = load_weights(cls.model_class, info, folder)
        rows = model.get_input_embeddings().num_embeddings
        refuse_larger_tokenizer(info, folder, len(tokenizer), rows)
        adapter = cls(info, model, tokenizer, processor, ())
        adapter._check_placeholder()
        if template := templates.find(folder, info.name):
            adapter.use_template(template)
        adapter._check_prompt()
        adapter._check_layers()
        size = int(model.config.vision_config.image_size)
        processors.refuse_other_sizes(info, processor, adapter.pixels, size)
        return adapter

    @property
    @abstractmethod
    def placeholder_id(self) -> int:
        """The token that represents one visual row."""

    @property
    def visual_id(self) -> int:
        return self.placeholder_id

    @property
    @abstractmethod
    def rows_per_image(self) -> int:
        """Visual rows of one image, as the checkpoint's processor counts them."""

    @property
    def patches(self) -> int:
        vision = self.model.config.vision_config
        return int(vision.image_size // vision.patch_size) ** 2

    def prompt_ids(self, question: str, images: int) -> tuple[list[int], int]:
        marks = images if self.one_each else 1
        text, bos = self._marked(marks).format(question=question), self.tokenizer.bos_token
        # as in transformers' processors: no second BOS if the template writes one
        own = bool(bos) and text.startswith(bos)
        ids: list[int] = self.tokenizer(text, add_special_tokens=not own)["input_ids"]
        if not self.has_template and ids[0] != self.tokenizer.bos_token_id:
            ids = [self.tokenizer.bos_token_id, *ids]  # the published prompt begins with BOS
        rows = [self.placeholder_id] * (self.rows_per_image * images // marks)
        ids = [new for one in ids for new in (rows if one == self.placeholder_id else (one,))]
        return ids, len(ids)

    def _marked(self, count: int) -> str:
        """The prompt with `count` placeholders, each on its own line if the first one is."""
        line = f"{self.placeholder}\n"
        mark = line if line in self.prompt else self.placeholder
        return self.prompt.replace(mark, mark * count)

    def embed(self, prepared: Prepared, features: Features) -> torch.Tensor:
        rows = features.rows
        embeds = self.model.get_input_embeddings()(prepared.input_ids)
        mask = (prepared.input_ids == self.placeholder_id).unsqueeze(-1)
        if int(mask.sum()) != len(rows):
            raise ValueError(f"{len(rows)} visual rows for {int(mask.sum())} placeholders")
        merged: torch.Tensor = embeds.masked_scatter(mask, rows.to(embeds.dtype))
        return merged

    @property
    def decoder(self) -> Decoder:
        return Decoder(
            self.model.model.language_model, self.model.lm_head, self.text_config, self.eos_ids
        )

    @property
    def text_config(self) -> Any:
        return self.model.config.text_config

    def _check_layers(self) -> None:
        """ModelUnavailable if the tower does not have the layer that is read."""
        config = self.model.config
        chosen, deep = config.vision_feature_layer, config.vision_config.num_hidden_layers
        for layer in chosen if isinstance(chosen, list) else [chosen]:
            if not -deep - 1 <= layer <= deep:
                raise ModelUnavailable(
                    f"{self.info.name}: the vision_feature_layer of its config.json is {layer}, "
                    f"but its tower has {deep} layers: copy both from one checkpoint."
                )

    def use_template(self, template: templates.Template) -> None:
        """Uses the checkpoint's chat template instead of the published prompt."""
        # Content is passed as parts, or as a string if the template does not support parts.
        parts = templates.parts(type(self).kind, 1)  # the template's kind, whatever is shown
        contents = (parts, lambda question: f"{self.placeholder}\n{question}")
        found = templates.prompts(self.tokenizer, template, contents, self.placeholder)
        prompt = next((one for one in found if isinstance(one, str)), found[-1])
        if isinstance(prompt, ModelUnavailable):
            raise prompt
        self.prompt = prompt  # type: ignore[misc]
        self.has_template = True
        if self.prompt != type(self).prompt:
            self.notes = (*self.notes, OWN_PROMPT)

    def _check_prompt(self) -> None:
        """A prompt needs BOS, unless a template writes it, and exactly one placeholder."""
        name, tokens = self.info.name, self.tokenizer
        if not self.has_template and tokens.bos_token_id is None:
            raise ModelUnavailable(
                f"{name}: its tokenizer has no bos_token, which the prompt needs: set it in "
                "tokenizer_config.json."
            )
        ids = tokens(self.prompt.format(question="What?"))["input_ids"]
        if ids.count(self.placeholder_id) != 1:
            raise ModelUnavailable(
                f"{name}: its tokenizer does not read {self.placeholder} in a prompt as one "
                "token: copy tokenizer and config.json from one checkpoint."
            )

    def _check_placeholder(self) -> None:
        found = self.tokenizer.convert_tokens_to_ids(self.placeholder)
        if found != self.placeholder_id:
            raise ModelUnavailable(
                f"{self.info.name}: its tokenizer gives {self.placeholder} the id {found} and its "
                f"config.json {self.placeholder_id}: copy both from one checkpoint."
            )


def _add_absent(tokenizer: Any, markers: Sequence[str]) -> None:
    """Adds tokens that a release has besides its tokenizer.model, if no file lists them."""
    known = tokenizer.get_vocab()
    if absent := [marker for marker in markers if marker not in known]:
        tokenizer.add_tokens(absent, special_tokens=True)
