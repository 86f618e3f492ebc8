"""A server of the tests' own that answers with a demo checkpoint, and can do something wrong.

Each fault is planted here in its own way, not by the code that looks for it.
"""

import base64
import io
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, pairwise
from typing import Any

import msgspec
import numpy as np
import torch
from PIL import Image

from engine.models.adapter import Adapter
from engine.types import Prepared
from tests.served.fake_server import FakeServer, _Handler, event, piece, says, serving, streams

PAUSE_S = 0.002  # between two tokens: no stream is quicker
USUAL = "USER: {picture}\n{question} ASSISTANT:"


@dataclass
class Fault:
    """What a server does otherwise.  `prompt` has {picture} and {question}; `model` changes the
    loaded model, and returns what undoes it."""

    picture: Callable[[Image.Image], Image.Image] = lambda one: one
    pictures: Callable[[list[Any]], list[Any]] = lambda every: every
    prompt: str = USUAL
    ids: Callable[[list[int]], list[int]] = lambda ids: ids
    model: Callable[[Any], Callable[[], None]] = lambda model: lambda: None
    generation: dict[str, Any] = field(default_factory=dict)
    most: int | None = None  # new tokens, whatever is asked for
    reason: str = ""  # why an answer ended; "": what is true
    tail: str = ""  # text after each answer
    told: int = 1  # times its new tokens
    counted: int = 0  # tokens that a prompt is said to have; 0: as many as it has
    canned: bool = False  # each answer is the first one
    cached: bool = False
    buffered: bool = False
    encodes_s: float = 0.0  # a picture that it has not seen
    waits: Callable[[], float] = lambda: 0.0  # seconds before each answer
    rendered: Callable[[list[int]], list[int]] = lambda ids: ids
    features: Callable[[list[str]], Any] = lambda every: every  # as it tells them


class ModelServer:
    """Answers the requests of a FakeServer; the checkpoint is `adapter`'s."""

    def __init__(self, adapter: Adapter, fault: Fault) -> None:
        self.adapter, self.fault = adapter, fault
        self.lock, self.chance = threading.Lock(), random.Random(0)
        self.seen: set[str] = set()
        self.known: dict[str, tuple[list[str], dict[str, int]]] = {}

    def __call__(self, handler: _Handler) -> None:
        body = handler.server.asked[-1]
        asked = str(body["messages"])
        if handler.path.endswith("/render"):
            parts = body["messages"][0]["content"]
            ids = self.prompt_ids(parts[-1]["text"], len(parts) - 1)
            features = {
                "kwargs_data": {"image": self.fault.features(self.encoded(self.pictures(body)))}
            }
            told = {"token_ids": self.fault.rendered(ids), "features": features}
            return says(200, told)(handler)
        time.sleep(self.fault.waits())
        pictures = str([part for part in body["messages"][0]["content"] if "image_url" in part])
        time.sleep(0.0 if pictures in self.seen else self.fault.encodes_s)
        self.seen.add(pictures)
        if body.get("logprobs"):
            with self.lock:
                return says(200, self.scored(body))(handler)
        with self.lock:
            known = self.known.get("" if self.fault.canned else asked)
            words, usage = known or self.answer(body)
            if self.fault.cached or self.fault.canned:
                self.known["" if self.fault.canned else asked] = words, usage
        at_once = self.fault.buffered or known is not None
        reason = "length" if len(words) >= body["max_tokens"] else "stop"
        end = [piece("", finish_reason=self.fault.reason or reason)]
        end += [event({"choices": [], "usage": usage}), b"data: [DONE]\n\n"]
        sent = [piece(), *map(piece, words), *end]
        if at_once:
            sent = [b"".join(sent)]
        streams(*sent, pause_s=0.0 if at_once else PAUSE_S)(handler)

    def scored(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer, with the most likely tokens of each step."""
        new, scores, _ = self.generated(body)
        decode = self.adapter.tokenizer.decode
        content = []
        for step, chosen in zip(scores, new, strict=True):
            top = step[0].log_softmax(-1).topk(body["top_logprobs"])
            pairs = zip(top.values.tolist(), top.indices.tolist(), strict=True)
            listed = [{"token": decode([one]), "logprob": nats} for nats, one in pairs]
            content.append({"token": decode([chosen]), "top_logprobs": listed})
        return {"choices": [{"logprobs": {"content": content}}]}

    def answer(self, body: dict[str, Any]) -> tuple[list[str], dict[str, int]]:
        new, _, ids = self.generated(body)
        text = [self.adapter.text(new[: at + 1]) for at in range(len(new))]
        words = [text[0], *(b[len(a) :] for a, b in pairwise(text))]
        told = self.fault.told * len(new)
        usage = {"prompt_tokens": self.fault.counted or len(ids), "completion_tokens": told}
        return [*words, self.fault.tail], usage

    @torch.inference_mode()
    def generated(
        self, body: dict[str, Any]
    ) -> tuple[list[int], tuple[torch.Tensor, ...], list[int]]:
        """The new ids, the scores of each step [1, vocabulary], and the prompt's ids."""
        images = self.pictures(body)
        question = body["messages"][0]["content"][-1]["text"]
        ids = self.fault.ids(self.prompt_ids(question, len(images)))
        given = torch.tensor([ids])
        options: dict[str, Any] = {"do_sample": False, "max_new_tokens": body["max_tokens"]}
        options |= {"eos_token_id": list(self.adapter.eos_ids), "pad_token_id": 0}
        if self.fault.most:
            options["max_new_tokens"] = self.fault.most
        options |= self.fault.generation
        if options["do_sample"]:
            torch.manual_seed(self.chance.randrange(2**32))
        undo = self.fault.model(self.adapter.model)
        try:
            pixels = {}
            if images:
                made = self.adapter.pixels(tuple(map(np.asarray, images)))
                prepared = Prepared(made, given, "", len(ids))
                pixels = self.adapter.visual_inputs(prepared)
            mask = torch.ones_like(given)
            out = self.adapter.model.generate(
                input_ids=given,
                attention_mask=mask,
                return_dict_in_generate=True,
                output_scores=True,
                **pixels,
                **options,
            )
        finally:
            undo()
        return out.sequences[0, len(ids) :].tolist(), out.scores, ids

    def pictures(self, body: dict[str, Any]) -> list[Image.Image]:
        parts = body["messages"][0]["content"]
        urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        files = (io.BytesIO(base64.b64decode(url.partition(",")[2])) for url in urls)
        return self.fault.pictures(
            [self.fault.picture(Image.open(file).convert("RGB")) for file in files]
        )

    def encoded(self, images: list[Image.Image]) -> list[str]:
        """Each picture after the processor, as vLLM encodes its tensors: an extension of code 3
        holds the bytes."""
        made = []
        for pixels in self.adapter.pixels(tuple(map(np.asarray, images))).bfloat16():
            content = msgspec.msgpack.Ext(3, pixels.view(torch.uint8).numpy().tobytes())
            field = {"data": ["bfloat16", list(pixels.shape), content], "field": ["batched"]}
            text = msgspec.msgpack.encode({"pixel_values": field})
            made.append(base64.b64encode(text).decode())
        return made

    def prompt_ids(self, question: str, pictures: int) -> list[int]:
        mark = getattr(self.adapter, "placeholder", "<image>")
        text = self.fault.prompt.format(picture=mark if pictures else "", question=question)
        ids: list[int] = self.adapter.tokenizer(text)["input_ids"]
        if ids[0] != self.adapter.tokenizer.bos_token_id:
            ids = [self.adapter.tokenizer.bos_token_id, *ids]
        rows = self.adapter.visual_rows(pictures)
        marks = [self.adapter.visual_id] * rows
        return [new for one in ids for new in (marks if one == self.adapter.visual_id else [one])]


@contextmanager
def model_serving(
    adapter: Adapter, fault: Fault | None = None, kind: str = "tests"
) -> Iterator[FakeServer]:
    with serving() as server:
        server.answer = ModelServer(adapter, fault or Fault())
        server.pages["/version"] = {"version": "1"} if kind == "vllm" else 404
        server.pages["/v1/models"] = {"data": [{"id": "served-model", "owned_by": kind}]}
        yield server


def _embeddings(model: Any) -> Any:
    tower = getattr(model.model, "vision_tower", None) or model.model.video_tower
    return next(part for part in tower.modules() if hasattr(part, "class_embedding"))


def class_last(model: Any) -> Callable[[], None]:
    """As llama.cpp's graph: patches, then the class embedding; positions in this order."""
    part = _embeddings(model)

    def forward(pixel_values: torch.Tensor, **_: Any) -> torch.Tensor:
        patches = part.patch_embedding(pixel_values.to(part.patch_embedding.weight.dtype))
        patches = patches.flatten(2).transpose(1, 2)
        last = part.class_embedding.expand(len(patches), 1, -1)
        rows: torch.Tensor = torch.cat([patches, last], 1) + part.position_embedding.weight
        return rows

    part.forward = forward
    return lambda: delattr(part, "forward")


def other_layer(step: int) -> Callable[[Any], Callable[[], None]]:
    """One layer of the tower fewer or more is computed before its rows are taken."""

    def planted(model: Any) -> Callable[[], None]:
        own = model.config.vision_feature_layer
        model.config.vision_feature_layer = own + step
        return lambda: setattr(model.config, "vision_feature_layer", own)

    return planted


def other_weights(model: Any) -> Callable[[], None]:
    """Another model of the same form: its projector is another one."""
    part = model.model.multi_modal_projector.linear_2.weight
    own = part.data
    part.data = own[torch.randperm(len(own), generator=torch.Generator().manual_seed(0))]
    return lambda: setattr(part, "data", own)


def square(color: str) -> Callable[[Image.Image], Image.Image]:
    """The picture in the middle of a square of this colour."""

    def padded(one: Image.Image) -> Image.Image:
        side = max(one.size)
        made = Image.new("RGB", (side, side), color)
        made.paste(one, ((side - one.width) // 2, (side - one.height) // 2))
        return made

    return padded


def middle(one: Image.Image) -> Image.Image:
    side = min(one.size)
    left, top = (one.width - side) // 2, (one.height - side) // 2
    return one.crop((left, top, left + side, top + side))


def compressed(one: Image.Image) -> Image.Image:
    file = io.BytesIO()
    one.save(file, "JPEG", quality=75)
    return Image.open(io.BytesIO(file.getvalue()))


def exchanged(one: Image.Image) -> Image.Image:
    return Image.fromarray(np.asarray(one)[:, :, ::-1].copy())


SYSTEM = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the user's questions. "
)
FAULTS: dict[str, tuple[Fault, str, str]] = {
    # fault, the check that finds it, what its sentence says
    "padded": (Fault(picture=square("black")), "why", "padded with black to a square"),
    "cropped": (Fault(picture=middle), "why", "cropped to a square: 3 of 3"),
    "BGR": (Fault(picture=exchanged), "why", "red and blue exchanged: 3 of 3"),
    "dropped": (Fault(pictures=lambda _: []), "why", "no picture: 3 of 3"),
    "blind": (Fault(pictures=lambda _: []), "saw", "does not see the pictures"),
    "no line break": (
        Fault(prompt=USUAL.replace("\n", "")), "saw", "the checkpoint's processor makes"),
    "system prompt": (Fault(prompt=SYSTEM + USUAL), "why", "a system prompt before the question"),
    "ChatML": (
        Fault(prompt="<|im_start|>user\n{picture}\n{question}<|im_end|>\n<|im_start|>assistant\n"),
        "why", "the ChatML prompt: 3 of 3"),
    "no BOS": (Fault(ids=lambda ids: ids[1:]), "saw", "the checkpoint's processor makes"),
    "class last": (Fault(model=class_last), "why", "the class embedding after the patches: 3 of 3"),
    "layer fewer": (Fault(model=other_layer(-1)), "why", "one vision layer fewer: 3 of 3"),
    "class last and BGR": (
        Fault(picture=exchanged, model=class_last), "why",
        "red and blue exchanged and the class embedding after the patches: 3 of 3"),
    "penalty": (
        Fault(generation={"repetition_penalty": 1.1}), "why", "a repetition penalty of 1.1: 3 of"),
    "cut": (Fault(most=12), "why", "answers cut after 12 tokens: 3 of 3"),
    "cut, as if by the limit": (
        Fault(most=12, reason="length"), "why", "answers cut after 12 tokens: 3 of 3"),
    "a marker as text": (Fault(tail="</s>", reason="length"), "same", "0 of 3 answers"),
    "tokens counted ten times": (Fault(told=10), "reached", "new tokens, where the answer has"),
    "sampled": (
        Fault(generation={"do_sample": True, "temperature": 1.0}), "repeats", "at temperature 0"),
    "cached": (Fault(cached=True), "repeats", "answers from a cache"),
    "buffered": (Fault(buffered=True), "arrivals", "all at once"),
    "slow at random": (
        Fault(waits=partial(next, cycle((0.0, 0.0, 0.6, 0.6)))), "steady", "vary too much"),
    "another model": (Fault(model=other_weights), "why", "Not explained"),
    "not read": (Fault(canned=True), "reached", "the request was not read"),
    "miscounted": (Fault(counted=77), "reached", "the request was not read"),
}  # fmt: skip
