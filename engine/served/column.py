"""A served model as the pipeline sees it: the same sample and question, sent as one request.

The stages load and preprocess are ours: reading, choosing frames, encoding PNG.  What follows is
the server's: upload and queue (until its headers), the first text, the rest.  Vision and prefill
are not visible, so they are no spans.
"""

import base64
from collections.abc import Mapping
from typing import Any

import torch

from engine import media
from engine.errors import BadInput, Cancelled
from engine.machine.load import Meter
from engine.media import images
from engine.models import registry
from engine.models.checkpoint import ModelEntry, Server
from engine.pipeline import Watcher
from engine.plain_files import read_bytes
from engine.served import capabilities, protocol
from engine.served.protocol import Reply
from engine.timing import Timeline
from engine.types import Generation, Media, RunRequest, RunResult, Sample, Served

NOT_TOLD = "The server does not tell how many tokens its answer has: no time per token is given."
AT_ONCE = "The server sends its text all at once: no time per token is given."
RETRIED = "The request was sent {} times before it was answered: times include that."
NO_MODES = "A server has no modes: the setting {} was not used."
ITS_FRAMES = "The clip was sent as a file: the server chose its frames, which may be others."
MOST_CLIP = 64 * 2**20  # bytes
CLIP = Media("video", (), "", "the file of the clip", notes=(ITS_FRAMES,))
MAY_BE_CACHED = (
    "The prompt may come from a cache of the server: nothing that it takes switches that off."
)


def answer(
    entry: ModelEntry,
    request: RunRequest,
    watcher: Watcher | None = None,
    known: capabilities.Capabilities | None = None,
) -> RunResult:
    """Asks the server of the entry (`known`: what is known of it).  Raises ServerFailed, BadInput,
    Cancelled before the answer."""
    assert entry.server is not None
    server, watcher = entry.server, watcher or Watcher()
    known = known or capabilities.of(server)
    if least := request.how.decode.min_new_tokens:
        raise BadInput(
            f"{server.host} cannot be made to answer with {least:,} tokens: leave out the forced "
            "length."
        )
    media.prepare()  # imports, before the clock starts
    meter, timeline = Meter(torch.get_num_threads()), Timeline(torch.device("cpu"))
    with timeline.span("load"):
        watcher.stage("load")
        clip = _clip(request.sample) if server.clip else None
        loaded = watcher.load(request.sample, entry.kind, request.how) if clip is None else CLIP
    with timeline.span("preprocess"):
        watcher.stage("preprocess")
        sent_body = body(server, known, request, loaded, clip)
    if watcher.cancelled():
        raise Cancelled(f"{entry.name} was cancelled before it was asked.")
    watcher.stage("server")
    sent = timeline.now()
    reply = protocol.ask(
        server, sent_body, lambda text, ms: watcher.piece(text, sent + ms), watcher.cancelled
    )
    served = _served(server, sent, reply)
    return RunResult(
        request=request,
        model=registry.card(entry),
        spans=(*timeline.spans, *served.spans),
        generation=Generation((), reply.text.strip(), reply.stop, reply.prompt_tokens, ()),
        total_ms=timeline.end(),
        cold=False,
        backend="server",
        shown=loaded.shown,
        notes=(*loaded.notes, *_notes(known, request, reply, served)),
        environment={"device": server.host, "server": server.url, "software": known.software},
        extent=loaded.extent,
        clocks=(timeline.began, timeline.ended),
        machine_load=meter.read(),
        token_limit=request.how.decode.max_new_tokens,
        served=served,
    )


def _served(server: Server, sent: float, reply: Reply) -> Served:
    text = reply.text.strip()
    before = len(reply.text) - len(reply.text.lstrip())  # characters that the text lacks
    return Served(
        host=server.host,
        tokens=reply.tokens,
        sent_ms=sent,
        headers_ms=sent + reply.headers_ms,
        end_ms=sent + reply.end_ms,
        arrivals_ms=tuple(sent + ms for ms, _ in reply.pieces),
        text_ends=tuple(min(max(0, end - before), len(text)) for _, end in reply.pieces),
        retries=reply.retries,
        told=reply.told | ({"usage": reply.usage} if reply.usage else {}),
    )


def _notes(
    known: capabilities.Capabilities, request: RunRequest, reply: Reply, served: Served
) -> list[str]:
    notes = [] if reply.tokens is not None or reply.stop == "cancelled" else [NOT_TOLD]
    notes += [AT_ONCE] if served.buffered else []
    if reply.retries:
        notes.append(RETRIED.format(reply.retries + 1))
    if request.how.mode == "hooked":
        notes.append(NO_MODES.format("hooked"))
    if known.takes.reuses:
        notes.append(MAY_BE_CACHED)
    return notes


def body(
    server: Server,
    known: capabilities.Capabilities,
    request: RunRequest,
    loaded: Media,
    clip: bytes | None = None,
) -> dict[str, Any]:
    """The request: the pictures in their order, without loss, then the question, in one turn; and
    every sampler, because servers differ in defaults."""
    pictures = (images.encoded(image, "PNG", compress_level=1) for image in loaded.images)
    parts = [_part("image", "png", picture) for picture in pictures]
    parts += [] if clip is None else [_part("video", "mp4", clip)]
    content = [*parts, {"type": "text", "text": request.prompt}]
    decode = request.how.decode
    found: dict[str, Any] = {
        "messages": [{"role": "user", "content": content}],
        "model": server.model,
        "stream": True,
        "max_tokens": decode.max_new_tokens,
        "temperature": decode.temperature,
        "top_p": decode.top_p,
    }
    return found | ({"seed": decode.seed} if decode.temperature else {}) | known.takes.fields()


def _clip(sample: Sample) -> bytes:
    if sample.mp4 is None or sample.window is not None:
        raise BadInput(
            f"Sample {sample.id} is no whole clip: leave clip out of the entry, to send frames."
        )
    return read_bytes(sample.mp4, MOST_CLIP, "The clip")


def _part(kind: str, form: str, data: bytes) -> Mapping[str, Any]:
    """A picture or a clip of a turn, as a data URL."""
    url = f"data:{kind}/{form};base64,{base64.b64encode(data).decode()}"
    return {"type": f"{kind}_url", f"{kind}_url": {"url": url}}
