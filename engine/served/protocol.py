"""One request to a server of the OpenAI-compatible protocol: its stream, and how it can fail.

Boundary: HTTP, server-sent events and JSON; knows no models and no samples.  The arrival of a piece
of text is the moment at which its bytes were read.  A piece is not a token: only `usage` counts
tokens.  Memory and time are bounded, whatever the server sends.
"""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import httpx2
import msgspec

from engine.errors import Cancelled, ServerAway, ServerFailed
from engine.models import registry
from engine.models.checkpoint import Server
from engine.quoting import MAX_LINE, count, one_line, quoted
from engine.types import Stop

POLL_S = 0.02  # how soon a cancel is noticed
CONNECT_S = 10.0
MOST_BYTES = 32 * 2**20  # of one reply; each token is a line of some hundred bytes
MOST_LINE = 2**20
MOST_SAID = 64 * 2**10  # bytes of an error, or of what it tells of itself
MOST_NUMBERS, MOST_NUMBER = 40, 1e12  # in its usage and timings
RETRIES = 2
NOT_HERE = (401, 403, 404)  # no request will be answered
BUSY = (429, 503)  # tried again: no answer was begun
PATIENCE_S = 1.0  # before it, if the server names no time
STOPS: Mapping[object, Stop] = {"length": "length", "max_tokens": "length"}
COMPLETIONS = "/chat/completions"
HTTP_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError)


@dataclass
class Reply:
    """What a server has sent for one request so far; milliseconds since it was first sent.
    `pieces` has the arrival of each piece of text and the characters of the text up to its end.
    `usage` and `told` (its own times) are the server's word."""

    text: str = ""
    stop: Stop = "cancelled"
    headers_ms: float = 0.0
    end_ms: float = 0.0
    pieces: list[tuple[float, int]] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    retries: int = 0
    ended: bool = False
    began: float = field(default_factory=time.perf_counter)

    def now(self) -> float:
        return 1000 * (time.perf_counter() - self.began)

    @property
    def tokens(self) -> int | None:
        """The number of new tokens, if the server tells it."""
        return _whole(self.usage.get("completion_tokens"))

    @property
    def prompt_tokens(self) -> int | None:
        return _whole(self.usage.get("prompt_tokens"))


def ask(
    server: Server,
    body: Mapping[str, Any],
    piece: Callable[[str, float], None] = lambda text, ms: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Reply:
    """Sends `body` and follows the answer; `piece` gets the text so far and its arrival.  Raises
    ServerFailed; Cancelled before the first piece.  A later cancel closes the connection and
    returns what has arrived, with the stop "cancelled"."""
    reply = Reply()
    _run(lambda: _until(_asked(server, body, piece, reply), server, cancelled))
    if not reply.ended and not reply.pieces:
        raise Cancelled(f"The request to {server.host} was cancelled.")
    reply.end_ms = reply.now()
    return reply


def get(
    server: Server,
    path: str,
    seconds: float,
    body: Mapping[str, Any] | None = None,
    most: int = MOST_SAID,
) -> tuple[int, Mapping[str, str], Any]:
    """The status, headers and JSON (None if it is none, or has more than so many bytes) of an
    address below the server's origin or, beginning with /v1, its API; ServerFailed without an
    answer.  A body is posted."""
    found: list[tuple[int, Mapping[str, str], Any]] = []

    async def read() -> None:
        try:
            async with (
                _client(server) as client,
                client.stream(
                    "GET" if body is None else "POST",
                    server.address(path),
                    content=None if body is None else msgspec.json.encode(body),
                    headers=_headers(server),
                ) as response,
            ):
                text = (await _some(response, most)).decode("utf-8", "replace")
                value = None
                with suppress(ValueError, RecursionError):
                    value = json.loads(text)
                found.append((response.status_code, dict(response.headers), value))
        except HTTP_ERRORS as error:
            raise _failure(server, error) from error

    _run(lambda: _until(read(), server, lambda: False, seconds))
    return found[0]


def _run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs to the end, in a thread of its own where this one has a loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(work())).result()


async def _until(
    work: Coroutine[Any, Any, None],
    server: Server,
    cancelled: Callable[[], bool],
    seconds: float | None = None,
) -> None:
    """Waits for the work; closes its connection after a cancel, or when its time is over."""
    limit = server.timeout_s if seconds is None else seconds
    end, task = time.monotonic() + limit, asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=POLL_S)
        late = time.monotonic() > end
        if not task.done() and (late or cancelled()):
            task.cancel()
            await asyncio.wait({task})
            if late:
                advice = "raise timeout_s in models.toml, or ask for fewer tokens"
                raise ServerFailed(
                    f"{server.host} did not finish within {limit:g} s: "
                    f"{'see its log' if seconds else advice}."
                )
            return
    task.result()


async def _asked(
    server: Server, body: Mapping[str, Any], piece: Callable[[str, float], None], reply: Reply
) -> None:
    sent = msgspec.json.encode(body)
    async with _client(server) as client:
        while True:
            try:
                wait = await _attempt(client, server, sent, piece, reply)
            except HTTP_ERRORS as error:
                lost = isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError)
                if not lost or reply.headers_ms or reply.retries == RETRIES:
                    raise _failure(server, error, bool(reply.pieces)) from error
                wait = 0.0
            if wait is None:
                return
            reply.retries += 1
            await asyncio.sleep(wait)


async def _attempt(
    client: httpx2.AsyncClient,
    server: Server,
    sent: bytes,
    piece: Callable[[str, float], None],
    reply: Reply,
) -> float | None:
    """None once the answer has ended; the seconds after which to try again if it was not begun."""
    address = server.url + COMPLETIONS
    async with client.stream("POST", address, content=sent, headers=_headers(server)) as response:
        wait = _patience(response.headers.get("Retry-After", ""))
        left = server.timeout_s - reply.now() / 1000
        if response.status_code in BUSY and reply.retries < RETRIES and wait < left:
            return wait
        if response.status_code != 200:
            said = (await _some(response)).decode("utf-8", "replace")
            away = response.status_code in NOT_HERE or response.status_code // 100 == 3
            raise (ServerAway if away else ServerFailed)(_refusal(server, response, said))
        reply.headers_ms = reply.now()
        if (form := response.headers.get("Content-Encoding", "identity")) != "identity":
            raise ServerFailed(f"{server.host} sends {quoted(form)} unasked: switch it off there.")
        await _follow(response, server, piece, reply)
    return None


async def _follow(
    response: httpx2.Response, server: Server, piece: Callable[[str, float], None], reply: Reply
) -> None:
    """Reads the events of a stream, or the one object of a server that does not stream."""
    streams = "text/event-stream" in response.headers.get("Content-Type", "")
    rest, size, most = b"", 0, MOST_LINE if streams else MOST_BYTES
    async for chunk in response.aiter_raw():
        size += len(chunk)
        rest += chunk
        *lines, rest = rest.split(b"\n") if streams else (rest,)
        for line in lines:
            if _event(line, server, piece, reply):
                return
        if size > MOST_BYTES or len(rest) > most:
            raise ServerFailed(
                f"{server.host} sent {size / 2**20:,.0f} MiB without an end: its answer is dropped."
            )
    if rest.strip():
        _event(rest if streams else b"data:" + rest, server, piece, reply)
    if not reply.ended:
        raise ServerFailed(
            f"{server.host} ended in the middle of the answer, after "
            f"{count(len(reply.text), 'character')}: see its log."
        )


def _event(line: bytes, server: Server, piece: Callable[[str, float], None], reply: Reply) -> bool:
    """Takes one line of a stream; whether it was the last one."""
    kind, _, data = line.partition(b":")
    kind, data = kind.strip(), data.strip()
    if kind == b"error":  # llama.cpp's field of a failure in a stream
        data = b'{"error":%s}' % data
    elif kind != b"data":  # a comment, an id, the blank line between events
        return False
    if data == b"[DONE]":
        if not reply.ended and not reply.pieces:
            raise ServerFailed(f"{server.host} ended without an answer: see its log.")
        if not reply.ended:  # it gives no reason
            reply.stop, reply.ended = "eos", True
        return True
    try:
        value = json.loads(data)
        choices = value.get("choices") or [{}]
        message = choices[0].get("delta") or choices[0].get("message") or {}
        text, reason = message.get("content") or "", choices[0].get("finish_reason")
        added = text if isinstance(text, str) else "".join(part["text"] for part in text)
        added = added.encode("utf-8", "replace").decode()  # half of a pair of surrogates
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError) as error:
        said = one_line(data[:MAX_LINE].decode("utf-8", "replace"))
        raise ServerFailed(
            f"{server.host} sent {quoted(said)}, which is no part of an answer: its address "
            "must be that of an OpenAI-compatible API."
        ) from error
    if failed := value.get("error"):
        raise ServerFailed(f"{server.host} failed during the answer{_said(server, failed)}.")
    if added:
        reply.text += added
        reply.pieces.append((reply.now(), len(reply.text)))
        piece(reply.text, reply.pieces[-1][0])
    if reason:
        reply.stop, reply.ended = STOPS.get(str(reason), "eos"), True
    reply.usage |= _numbers(value.get("usage"))
    for name in ("timings", "metrics"):  # of llama.cpp; of vLLM
        if numbers := _numbers(value.get(name)):
            reply.told[name] = numbers
    return False


async def _some(response: httpx2.Response, most: int = MOST_SAID) -> bytes:
    found = bytearray()
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) > most:
            break
    return bytes(found[:most])


def _client(server: Server) -> httpx2.AsyncClient:
    """Follows no redirect: pictures and keys go nowhere but to the address in models.toml.  A proxy
    of the environment is used for other machines only."""
    limit = httpx2.Timeout(server.timeout_s, connect=min(CONNECT_S, server.timeout_s))
    return httpx2.AsyncClient(timeout=limit, verify=_trusted(), trust_env=not server.loopback)


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Made once: each client would read all certificates."""
    return ssl.create_default_context()


def _headers(server: Server) -> dict[str, str]:
    """With the key in the environment, if it is named; ServerAway if the variable is not set."""
    key = server.key
    if server.api_key_env and not key:
        raise ServerAway(registry.lacks_key(server))
    if not key.isascii() or not key.isprintable():  # also not ""
        raise ServerAway(f"The key in {server.api_key_env} has characters that no key has.")
    plain = {"Accept-Encoding": "identity", "User-Agent": "stagescope"}
    plain["Content-Type"] = "application/json"
    return plain | ({"Authorization": f"Bearer {key}"} if key else {})


def _patience(stated: str) -> float:
    """The seconds of a Retry-After header; a date, or nothing, counts as PATIENCE_S."""
    try:
        return max(0.0, float(stated))
    except ValueError:
        return PATIENCE_S


def _refusal(server: Server, response: httpx2.Response, said: str) -> str:
    status, host, named = response.status_code, server.host, quoted(server.model)
    value: Any = said
    with suppress(ValueError, RecursionError):
        value = json.loads(said)
    if isinstance(value, dict):
        value = value.get("error") or value.get("detail") or value.get("message") or said
    why = _said(server, value, str(status))
    if response.has_redirect_location or 300 <= status < 400:
        to = quoted(one_line(response.headers.get("Location", "another address")))
        return f"{host} redirects to {to}: nothing was sent there; correct server in models.toml."
    if status in (401, 403):
        fix = "name the environment variable that holds a key as api_key_env in models.toml"
        if server.api_key_env:
            fix = f"correct it in {server.api_key_env}"
        return f"{host} refuses the key{why}: {fix}."
    return {
        404: f"{host} has no model {named} at this address{why}: correct server or model in "
        "models.toml.",
        413: f"{host} refuses the request as too large{why}: show the model fewer pictures.",
        422: f"{host} refuses a field of the request{why}: see its log.",
        429: f"{host} has too many requests{why}: try again later.",
    }.get(status, f"{host} refuses the request{why}: see its log.")


def _said(server: Server, value: Any, status: str = "") -> str:
    """What the server said of a failure, in brackets, without the key."""
    if isinstance(value, dict):
        value = value.get("message") or value
    words = one_line(" ".join(str(value).split()))[:MAX_LINE].rstrip(" .:")
    if server.key:
        words = words.replace(server.key, "...")
    parts = ": ".join(filter(None, (status, words)))
    return f" ({parts})" if parts else ""


def _failure(server: Server, error: BaseException, begun: bool = False) -> ServerFailed:
    """The error for a connection that was not made, or broke."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    secure = next((one for one in chain if isinstance(one, ssl.SSLError)), None)
    why = one_line(getattr(secure, "verify_message", "") or getattr(secure, "reason", "") or "")
    untrusted = f"has a certificate that is not trusted ({why}): "
    if not isinstance(secure, ssl.SSLCertVerificationError):
        untrusted = f"does not speak https ({why}): write http://, or "
    fix = "correct its address (server in models.toml)."
    forms: tuple[tuple[type[BaseException], type[ServerFailed], str], ...] = (
        (ssl.SSLError, ServerAway, untrusted + fix),
        (socket.gaierror, ServerAway, f"has no address (DNS): {fix}"),
        (httpx2.ConnectTimeout, ServerAway, f"took no connection within {CONNECT_S:g} s: {fix}"),
        (
            httpx2.TimeoutException,
            ServerFailed,
            f"was silent for {server.timeout_s:g} s: raise timeout_s in models.toml.",
        ),
        (httpx2.ConnectError, ServerAway, f"refuses connections: start the server, or {fix}"),
        (httpx2.InvalidURL, ServerAway, f"is no address: {fix}"),
    )
    for kind, failed, words in forms:
        if any(isinstance(one, kind) for one in chain):
            return failed(f"{server.host} {words}")
    where = "in the middle of the answer" if begun else "before an answer"
    return ServerFailed(f"{server.host} broke the connection {where}: see its log.")


def _numbers(value: object) -> dict[str, float]:
    """The numbers of an object, of which a server may send any amount of anything."""
    pairs = list(value.items())[:MOST_NUMBERS] if isinstance(value, dict) else ()
    return {
        one_line(name)[:MAX_LINE]: number
        for name, number in pairs
        if type(number) in (int, float) and abs(number) <= MOST_NUMBER
    }


def _whole(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
