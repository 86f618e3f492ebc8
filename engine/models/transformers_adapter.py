"""Any image-text-to-text model of transformers, by what all of them share.

Stage 2 is the checkpoint's own processor and chat template, stage 3 get_image_features() of the
model, stage 4 its forward() on `input_ids` and `mm_encoder_outputs`, which transformers takes since
5.18.  Embeddings alone would not do: models with M-RoPE compute positions from `input_ids` and
grids; without them they give other logits and raise no error.

forward() reads only FIELDS of an encoder's output, and each may be a tensor or lists of tensors,
nested as in Qwen3-VL; the feature cache keeps them by name.  What is only true of some families is
a row of families.py.  A model without the seam runs in hooked mode only.
"""

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForImageTextToText
from transformers.modeling_outputs import BaseModelOutputWithPooling

from engine.decoding.decode import Decoder, WholeModel
from engine.errors import BadInput, ModelUnavailable
from engine.media_options import MAX_PARTS
from engine.models import auto_processor, families, templates
from engine.models.adapter import Adapter, Way
from engine.models.checkpoint import ModelEntry
from engine.models.llava import OWN_PROMPT
from engine.models.loading import info_of, load_weights, reading, require
from engine.prompts import refuse_markers
from engine.quoting import count, first_line
from engine.types import ChosenFrames, Features, FeatureSpec, Image, Media, MediaKind, Prepared

ROWS = "pooler_output"  # the visual rows
FIELDS = (ROWS, "deepstack_features")
_NAMES = ("vision", "visual", "image")  # how the modules of a tower are called
_QUESTION = ("input_ids", "qformer_input_ids")  # an encoder that takes these reads the question
_TYPES = ("token_type_ids", "mm_token_type_ids")  # one number per token of the prompt
_TRIED = (96, 128)  # height and width of the picture that a loaded model is tried with
_NOT_PROVED: dict[Way, str] = {
    "compiled": "Its tokens are decoded eagerly: the compiled step is only proved for LLaMA.",
    "batch": "batches are not proved for {kind} models: choose a batch of 1, or another model.",
    "draft": "drafting is not proved for {kind} models: choose another model.",
}
_NO_SEAM = "transformers' {kind} takes no features, so stages 3 and 4 cannot be run apart."
ONE_PICTURE = (
    "{}: the prompt of {} models has room for 1 picture, and this sample would show it {}: write "
    'shows = "image" in models.toml, or choose to show it one image.'
)


class TransformersAdapter(Adapter):
    kind: MediaKind = "image"
    tower_takes_pictures = False

    @classmethod
    def load(cls, entry: ModelEntry, folder: Path) -> Adapter:
        info = info_of(entry, folder)
        template = templates.find(folder, info.name)
        assert template is not None  # families.py refuses a folder without one
        processor = auto_processor.load(info, folder)
        with reading(info, folder, "config.json"):
            config = AutoConfig.from_pretrained(folder, **auto_processor.LOCAL)
            model_class = AutoModelForImageTextToText._model_mapping[type(config)]
        model, info = load_weights(model_class, info, folder)
        adapter = cls(info, model, processor.tokenizer, processor.image_processor, (OWN_PROMPT,))
        adapter._begin(processor, template)
        return adapter

    def _begin(self, processor: Any, template: templates.Template) -> None:
        """Takes the processor and tries a picture, which shows what the model calls in stage 3."""
        self.processor, self.template = processor, template
        self.family: str = self.model.config.model_type
        self._texts: dict[tuple[str, int], str | ModelUnavailable] = {}
        self._render(("video", 1), *(("image", count) for count in range(1, MAX_PARTS + 1)))
        self._takes = _parameters(self.model.forward)
        needs_pixels = "pixel_values" in _parameters(self.model.generate)
        self._seam = "mm_encoder_outputs" in self._takes and not needs_pixels
        refuses = _NOT_PROVED if self._seam else {**_NOT_PROVED, "decoupled": _NO_SEAM}
        self.refuses = {way: why.format(kind=self.family) for way, why in refuses.items()}
        reads_clips = getattr(processor, "video_processor", None) is not None and self._seam
        self._clips = reads_clips and isinstance(self._texts["video", 1], str)
        noise = np.random.default_rng(0).integers(0, 256, (*_TRIED, 3), dtype=np.uint8)
        self._vision = {"image": self._tried(Media("image", (noise,), "", "a picture"))}
        if self._clips:  # frames can be given as one clip
            frames = ChosenFrames((0, 1, 2, 3), 4, rate=4.0)
            clip = Media("video", (noise,) * 4, "", "a clip", frames=frames)
            self._vision["video"] = self._tried(clip)

    def reworded(self, change: Callable[[str], str]) -> Adapter:
        made = copy.copy(self)
        made._texts = {
            key: change(text) if isinstance(text, str) else text
            for key, text in self._texts.items()
        }
        return made

    def _render(self, *wanted: tuple[str, int]) -> None:
        """Keeps the prompts of so many images or clips, or why there are none."""
        contents = [templates.parts(*one) for one in wanted]
        found = templates.prompts(self.tokenizer, self.template, contents)
        self._texts.update(zip(wanted, found, strict=True))

    def _tried(self, shown: Media) -> list[torch.nn.Module]:
        """The outermost modules that these pictures pass through, or ModelUnavailable."""
        modules = _outside_language(self.model, self.decoder)
        folder = self.template.file.parent
        with reading(self.info, folder, f"model, in a trial with {shown.source},"):
            with torch.inference_mode(), _outermost(modules) as called:
                prepared = self.preprocess(shown, "What is it?")
                self.see(prepared)
            fits = not self._seam or self.takes(prepared, self.encode(prepared))
            if fits:  # the language model may have a size or a rope that cannot work
                self.generate(prepared, max_new_tokens=1)
        what = "its processor writes other visual tokens than the model has features for"
        require(self.info, fits and bool(called), what)
        return called

    # stage 2
    def preprocess(self, media: Media, question: str) -> Prepared:
        refuse_markers(question, tuple(self.tokenizer.all_special_tokens))
        inputs = self._of_media(media, question)
        inputs.pop("attention_mask", None)  # nothing is padded
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor):
                scaled = name.startswith("pixel_values") and value.is_floating_point()
                inputs[name] = value.to(self.device, self.dtype if scaled else value.dtype)
        name = _pixel_name(inputs)
        ids, pixels = inputs.pop("input_ids"), inputs.pop(name)
        return Prepared(pixels, ids, self.input_digest(media), ids.shape[1], name, inputs)

    def _of_media(self, media: Media, question: str) -> dict[str, Any]:
        if len(media.images) > 1 and self.family in families.ONE_PICTURE:
            raise BadInput(ONE_PICTURE.format(self.info.name, self.family, len(media.images)))
        rate = self.clip_rate(media)
        text = self.prompt_text(question, *((1, "video") if rate else (len(media.images), "image")))
        return self.processor_inputs(media.images, text, rate)

    def clip_rate(self, media: Media) -> float | None:
        """Frames per second if the frames are given as one clip; None if as single images."""
        if not self._clips or media.kind != "video" or media.frames is None:
            return None
        return media.frames.shown_rate

    def prompt_text(self, question: str, count: int, part: str = "image") -> str:
        """The prompt as the chat template writes it for this many images, or clips ("video")."""
        if (part, count) not in self._texts:
            self._render((part, count))
        text = self._texts[part, count]
        if isinstance(text, ModelUnavailable):
            raise text
        return text.format(question=question)

    def prompt_ids(self, question: str, images: int) -> tuple[list[int], int]:
        """The ids before the processor puts the visual tokens in place."""
        ids: list[int] = self.tokenizer(self.prompt_text(question, images))["input_ids"]
        return ids, len(ids)

    def processor_inputs(
        self, images: Sequence[Image], text: str, rate: float | None
    ) -> dict[str, Any]:
        """The processor's outputs for all pictures and the prompt, or BadInput."""
        try:
            return auto_processor.inputs(self.processor, text, images, rate)
        except Exception as error:  # of any kind, as a processor may have for pictures
            raise BadInput(
                f"{self.info.name} does not take {count(len(images), 'picture')} of this size "
                f"({first_line(error)}): show it one picture, or a larger one."
            ) from error

    def pixels_of(self, media: Media) -> torch.Tensor:
        """What the processor makes of the pictures, in a shape of its own."""
        inputs = self._of_media(media, "What is it?")
        pixels: torch.Tensor = inputs[_pixel_name(inputs)]
        return pixels

    def shown(self, media: Media) -> str:
        count = len(media.images)
        what = {"events": "event images", "video": "frames"}.get(media.kind, "pictures")
        if count == 1:
            return media.shown
        detail = "" if media.shown == f"{count} {what}" else f": {media.shown}"
        given = "one clip" if self.clip_rate(media) else f"{count} images"
        return f"{count} {what} as {given}{detail}"

    # stage 3
    def encode(self, prepared: Prepared) -> Features:
        encoder = self._encoder(prepared)
        wanted, inputs = _parameters(encoder), self.visual_inputs(prepared)
        given = {name: value for name, value in inputs.items() if name in wanted}
        out = encoder(**given, return_dict=True)
        pairs = (_named(name, getattr(out, name, None)) for name in FIELDS)
        return Features(dict(chain.from_iterable(pairs)))

    def _encoder(self, prepared: Prepared) -> Any:
        """get_image_features() or get_video_features(); None for a model without the seam."""
        return getattr(self.model.base_model, f"get_{_modality(prepared)}_features", None)

    def see(self, prepared: Prepared) -> None:
        if self._seam:
            self.encode(prepared)
        else:  # only the model's own generate() encodes
            self.generate(prepared, max_new_tokens=1)

    # stage 4
    def embed(self, prepared: Prepared, features: Features) -> dict[str, Any]:
        values = self._rest(prepared) | _as_outputs(prepared, features)
        return {"input_ids": prepared.input_ids, **values, **self._last_logits(1)}

    def again(self, plain_embeds: torch.Tensor, prepared: Prepared, ids: Sequence[int]) -> Any:
        if not self._seam:
            return None  # its forward() would need the pixels
        stand_for = {self._token("image"), self._token("video")}
        first = next((n for n, one in enumerate(ids) if one in stand_for), len(ids))
        ids = ids[: first + 1]  # only an untrained model answers with visual tokens
        tokens = torch.tensor([list(ids[:-1])], dtype=torch.long, device=self.device)
        inputs = self.visual_inputs(prepared)  # pixels, so that a fault of embed() stands out
        values = {name: value for name, value in inputs.items() if name in self._takes}
        values["input_ids"] = torch.cat([prepared.input_ids, tokens], dim=1)
        for name in (name for name in _TYPES if name in values):
            new = 1 if self.family == "paligemma" else 0  # 0 means a prompt's token there
            values[name] = torch.nn.functional.pad(values[name], (0, tokens.shape[1]), value=new)
        out = self.model(**values | self._last_logits(len(ids)), use_cache=False)
        return out.logits[0, -len(ids) :]

    def _rest(self, prepared: Prepared) -> dict[str, Any]:
        """The processor's outputs without pixels, as far as forward() takes them."""
        return {name: value for name, value in prepared.inputs.items() if name in self._takes}

    def _last_logits(self, count: int) -> dict[str, int]:
        return {"logits_to_keep": count} if "logits_to_keep" in self._takes else {}

    def generate_from_features(
        self, prepared: Prepared, features: Features, **options: Any
    ) -> torch.Tensor:
        out: torch.Tensor = self.model.generate(
            input_ids=prepared.input_ids,
            attention_mask=torch.ones_like(prepared.input_ids),
            **_as_outputs(prepared, features),
            **prepared.inputs,
            **options,
        )
        return out[:, prepared.input_ids.shape[1] :]

    @property
    def visual_id(self) -> int:
        return self._token("image")

    def _token(self, modality: str) -> int:
        """The placeholder's id, -1 if the model has none."""
        names = (f"{modality}_token_id", f"{modality}_token_index")
        ids = (getattr(self.model.config, name, None) for name in names)
        return next((int(one) for one in ids if one is not None), -1)

    def visual_places(self, ids: torch.Tensor) -> torch.Tensor:
        return (ids == self._token("image")) | (ids == self._token("video"))

    def vision_modules(self) -> list[torch.nn.Module]:
        return self._vision[self.kind if self.kind in self._vision else "image"]

    @property
    def decoder(self) -> WholeModel:
        model, head = self.model, self.model.get_output_embeddings()
        return WholeModel(model.get_decoder(), head, self.text_config, self.eos_ids, model)

    # keys
    def feature_spec(self, prepared: Prepared) -> FeatureSpec:
        spec = replace(super().feature_spec(prepared), model=f"transformers {self.family}")
        encoder = self._encoder(prepared)
        if encoder is None or not set(_QUESTION) & _parameters(encoder):
            return spec
        return replace(spec, question=str(prepared.input_ids[0].tolist()))

    def takes(self, prepared: Prepared, features: Features) -> bool:
        """Whether there is one row of features for each visual token of the prompt."""
        floating = all(one.is_floating_point() for one in features.tensors.values())
        wanted = int(self.visual_places(prepared.input_ids).sum())
        parts = [one for name, one in features.tensors.items() if name.startswith(ROWS)]
        return floating and wanted == sum(one.numel() // max(one.shape[-1], 1) for one in parts)


def _parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters)


def _pixel_name(inputs: Mapping[str, Any]) -> str:
    return next(name for name in inputs if name.startswith("pixel_values"))


def _modality(prepared: Prepared) -> str:
    """Which encoder takes these pixels: that of clips, or that of images."""
    return "video" if prepared.pixel_name == "pixel_values_videos" else "image"


def _named(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """A tensor, or nested lists of tensors, by names such as "pooler_output.0"."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif value is not None:
        for index, one in enumerate(value):
            yield from _named(f"{name}.{index}", one)


def _as_outputs(prepared: Prepared, found: Features) -> dict[str, Any]:
    """The keyword argument with which forward() and generate() take features."""
    out = BaseModelOutputWithPooling()
    for name in FIELDS:
        if (value := _nested(found.tensors, name)) is not None:
            out[name] = value
    return {"mm_encoder_outputs": {_modality(prepared): out}}


def _nested(tensors: Mapping[str, torch.Tensor], name: str) -> Any:
    """The tensor, or the nested lists of tensors, that _named() took apart; None without any."""
    if name in tensors:
        return tensors[name]
    found: list[Any] = []
    while any(f"{one}.".startswith(f"{name}.{len(found)}.") for one in tensors):
        found.append(_nested(tensors, f"{name}.{len(found)}"))
    return found or None


def _outside_language(model: Any, decoder: Decoder) -> Iterator[torch.nn.Module]:
    """The modules that are neither in the language model nor around it, nor the head.  A few old
    models have their tower inside the language model: there the names decide."""
    if decoder.language_model in (model, model.base_model):
        names = ((name.split(".")[-1], one) for name, one in model.named_modules())
        yield from (one for name, one in names if name.startswith(_NAMES))
        return
    inside = {id(one) for part in (decoder.language_model, decoder.head) for one in part.modules()}
    for module in model.modules():
        if id(module) not in inside and not any(id(one) in inside for one in module.modules()):
            yield module


@contextmanager
def _outermost(modules: Iterable[torch.nn.Module]) -> Iterator[list[torch.nn.Module]]:
    """Inside a `with`: which of these modules are called while none of the others is running."""
    called: list[torch.nn.Module] = []
    running: list[torch.nn.Module] = []

    def enter(module: torch.nn.Module, *_: Any) -> None:
        if not running and module not in called:
            called.append(module)
        running.append(module)

    with ExitStack() as stack:
        for module in modules:
            stack.callback(module.register_forward_pre_hook(enter).remove)
            stack.callback(module.register_forward_hook(lambda *_: running.pop() and None).remove)
        yield called
