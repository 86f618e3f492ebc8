"""LLaVA-1.5 and Video-LLaVA: one placeholder token in the prompt per visual row."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import torch
from transformers import LlavaForConditionalGeneration, VideoLlavaForConditionalGeneration

from engine.errors import ModelUnavailable
from engine.models import auto_processor, templates
from engine.models.adapter import Adapter
from engine.models.checkpoint import ModelEntry
from engine.models.loading import (
    info_of,
    load_tokenizer,
    load_weights,
    refuse_larger_tokenizer,
    require,
)
from engine.types import Features, Prepared

OWN_PROMPT = "The prompt comes from the checkpoint's chat template."


class PlaceholderAdapter(Adapter):
    model_class: ClassVar[Any]
    placeholder: ClassVar[str]
    markers: ClassVar[tuple[str, ...]]  # tokens that sentencepiece lacks, in the order of their ids
    one_each = False  # whether each picture has its own placeholder in the prompt
    has_template = False  # whether the prompt comes from the checkpoint's chat template

    @classmethod
    def load(cls, entry: ModelEntry, folder: Path) -> Adapter:
        info = info_of(entry, folder)
        tokenizer = load_tokenizer(info, folder)
        if not (folder / "tokenizer.json").is_file():
            known = tokenizer.get_vocab()  # a release has these besides its tokenizer.model
            if absent := [marker for marker in cls.markers if marker not in known]:
                tokenizer.add_tokens(absent, special_tokens=True)
        processor = auto_processor.load_image(info, folder)
        model, info = load_weights(cls.model_class, info, folder)
        refuse_larger_tokenizer(info, len(tokenizer), model.get_input_embeddings().num_embeddings)
        adapter = cls(info, model, tokenizer, processor, ())
        if template := templates.find(folder, info.name):
            # Content is passed as parts, or as a string if the template does not support parts.
            parts = templates.parts(cls.kind, 1)  # the template's kind, whatever is shown
            contents = (parts, lambda question: f"{cls.placeholder}\n{question}")
            found = templates.prompts(tokenizer, template, contents, cls.placeholder)
            prompt = next((one for one in found if isinstance(one, str)), found[-1])
            if isinstance(prompt, ModelUnavailable):
                raise prompt
            adapter.prompt, adapter.has_template = prompt, True  # type: ignore[misc]
            if prompt != cls.prompt:
                adapter.notes = (*adapter.notes, OWN_PROMPT)
        # A prompt needs BOS, unless a template writes it, and one placeholder with its id; the
        # tower needs the layer whose output is read.
        config, visual_id = model.config, adapter.visual_id
        known = tokenizer.convert_tokens_to_ids(cls.placeholder)
        ids = tokenizer(adapter.prompt.format(question="What?"))["input_ids"]
        has_bos = adapter.has_template or tokenizer.bos_token_id is not None
        chosen, deep = config.vision_feature_layer, config.vision_config.num_hidden_layers
        layers = chosen if isinstance(chosen, list) else [chosen]
        fit = all(layer and -deep - 1 <= layer <= deep for layer in layers)
        where = f"the id {known} for {cls.placeholder}, and its config.json {visual_id}"
        require(info, known == visual_id, f"its tokenizer has {where}")
        require(info, has_bos, "its tokenizer has no bos_token, which the prompt needs")
        once = ids.count(visual_id) == 1
        require(info, once, f"its tokenizer does not read {cls.placeholder} as one token")
        what = f"the vision_feature_layer of its config.json is {chosen}, its tower has {deep}"
        require(info, fit, what)
        auto_processor.refuse_other_sizes(info, folder, processor, config.vision_config.image_size)
        return adapter

    @property
    def visual_id(self) -> int:
        return int(getattr(self.model.config, f"{self.placeholder.strip('<>')}_token_id"))

    def prompt_ids(self, question: str, images: int) -> tuple[list[int], int]:
        marks, line = images if self.one_each else 1, f"{self.placeholder}\n"
        mark = line if line in self.prompt else self.placeholder  # each on its own line
        text = self.prompt.replace(mark, mark * marks).format(question=question)
        bos = self.tokenizer.bos_token
        # as in transformers' processors: no second BOS if the template writes one
        own = bool(bos) and text.startswith(bos)
        ids: list[int] = self.tokenizer(text, add_special_tokens=not own)["input_ids"]
        if not self.has_template and ids[0] != self.tokenizer.bos_token_id:
            ids = [self.tokenizer.bos_token_id, *ids]  # the published prompt begins with BOS
        rows = [self.visual_id] * (self.visual_rows(images) // marks)
        ids = [new for one in ids for new in (rows if one == self.visual_id else (one,))]
        return ids, len(ids)

    def embed(self, prepared: Prepared, features: Features) -> torch.Tensor:
        rows = features.rows
        embeds = self.model.get_input_embeddings()(prepared.input_ids)
        mask = (prepared.input_ids == self.visual_id).unsqueeze(-1)
        if int(mask.sum()) != len(rows):
            raise ValueError(f"{len(rows)} visual rows for {int(mask.sum())} placeholders")
        merged: torch.Tensor = embeds.masked_scatter(mask, rows.to(embeds.dtype))
        return merged


class LlavaAdapter(PlaceholderAdapter):
    """LLaVA-1.5: one image or several, one row per patch."""

    kind = "image"
    prompt = "USER: <image>\n{question} ASSISTANT:"
    placeholder = "<image>"
    markers = ("<image>",)
    one_each = True
    model_class = LlavaForConditionalGeneration

    def encode_batch(self, prepared: Sequence[Prepared]) -> list[Features]:
        pixels = torch.cat([one.pixels for one in prepared])
        rows = iter(self.model.model.get_image_features(pixels).pooler_output)
        return [
            Features({"rows": torch.cat(list(islice(rows, len(one.pixels))))}) for one in prepared
        ]

    def vision_modules(self) -> list[torch.nn.Module]:
        return [self.model.model.vision_tower, self.model.model.multi_modal_projector]


class VideoLlavaAdapter(PlaceholderAdapter):
    """Video-LLaVA: eight frames, with one row per patch and one for CLS per frame.  transformers'
    video processor needs torchvision; the image processor gives the same pixels frame by frame."""

    kind = "video"
    prompt = "USER: <video>\n{question} ASSISTANT:"
    placeholder = "<video>"
    markers = ("<image>", "<video>")
    model_class = VideoLlavaForConditionalGeneration

    def visual_inputs(self, prepared: Prepared) -> dict[str, Any]:
        return {"pixel_values_videos": prepared.pixels[None]}  # clips have a dimension more

    def encode_batch(self, prepared: Sequence[Prepared]) -> list[Features]:
        if len({len(one.pixels) for one in prepared}) > 1:  # lengths must be equal
            return [self.encode(one) for one in prepared]
        pixels = torch.stack([one.pixels for one in prepared])
        rows = self.model.model.get_video_features(pixels).pooler_output
        return [Features({"rows": one.flatten(0, 1)}) for one in rows.chunk(len(prepared))]

    def vision_modules(self) -> list[torch.nn.Module]:
        return [self.model.model.video_tower, self.model.model.multi_modal_projector]
