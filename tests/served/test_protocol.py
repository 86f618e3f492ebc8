"""What is read of a stream, each way in which a server fails, and that nothing hangs."""

import asyncio
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.errors import Cancelled, ServerFailed
from engine.models.checkpoint import Server
from engine.served import protocol
from tests.served import fake_server
from tests.served.fake_server import Answer, FakeServer, event, in_turn, piece, says, streams, whole

BODY = {"model": "served-model", "stream": True, "messages": []}
TEXT = "".join(fake_server.WORDS)


def asked(server: Server) -> protocol.Reply:
    return protocol.ask(server, BODY)


def test_the_pieces_their_arrivals_and_the_usage(fake: FakeServer, server: Server) -> None:
    fake.answer = streams(*whole(), pause_s=0.02)
    seen = list[tuple[str, float]]()
    found = protocol.ask(server, BODY, lambda text, ms: seen.append((text, ms)))
    assert (found.text, found.stop, found.tokens, found.prompt_tokens) == (TEXT, "eos", 9, 52)
    assert [text for text, _ in seen] == [TEXT[:end] for _, end in found.pieces]
    assert len(seen) == len(fake_server.WORDS)
    times = [ms for ms, _ in found.pieces]
    assert (
        len(times) == len(fake_server.WORDS)
        and times == sorted(times)
        and times[-1] - times[0] > 50
    )
    assert 0 < found.headers_ms <= times[0] <= times[-1] <= found.end_ms
    assert fake.asked == [BODY] and "Authorization" not in fake.headers[0]


@pytest.mark.parametrize("name", ["timings", "metrics"])
def test_the_servers_own_times_are_kept(fake: FakeServer, server: Server, name: str) -> None:
    own = {"time_to_first_token_ms": 85.2, "note": "no number"}
    fake.answer = streams(piece("x"), event({"choices": [], name: own}), *whole())
    assert asked(server).told == {name: {"time_to_first_token_ms": 85.2}}
    fake.answer = streams(*whole())
    assert asked(server).told == {}


@pytest.mark.parametrize(
    ("answer", "text", "stop", "tokens"),
    [
        (streams(*whole(usage=None)), TEXT, "eos", None),
        (streams(*whole(stop="length")), TEXT, "length", 9),
        (streams(b"".join(whole())), TEXT, "eos", 9),  # all at once
        (streams(*(b": ping\n\n", b"id: 1\r\n", *whole())), TEXT, "eos", 9),
        (streams(*whole()[:-1]), TEXT, "eos", 9),  # without [DONE]
        (streams(*(bytes([one]) for one in b"".join(whole()))), TEXT, "eos", 9),
        (streams(*whole(("Straße ", "\U0001f697"))), "Straße \U0001f697", "eos", 9),
        (says(200, {"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}],
                    "usage": fake_server.USAGE}), TEXT, "eos", 9),  # it does not stream
        (streams(*whole(("a \ud800 b",))), "a ? b", "eos", 9),  # half of a pair of surrogates
        (streams(piece("x"), piece("", finish_reason=["odd"])), "x", "eos", None),
        (streams(piece("x"), event({"choices": [], "usage": {"completion_tokens": "many"}}),
                 b"data: [DONE]\n"), "x", "eos", None),
        (streams(piece("x"), event({"usage": {"completion_tokens": 10**300, "x": ["y"] * 9}}),
                 b"data: [DONE]\n"), "x", "eos", None),
    ],
)  # fmt: skip
def test_forms_of_an_answer(
    fake: FakeServer, server: Server, answer: Answer, text: str, stop: str, tokens: int | None
) -> None:
    fake.answer = answer
    found = asked(server)
    assert (found.text, found.stop, found.tokens) == (text, stop, tokens)


def test_a_notebook_has_a_loop_already(server: Server) -> None:
    async def cell() -> str:
        return asked(server).text

    assert asyncio.run(cell()) == TEXT


def error(message: str) -> dict[str, object]:
    return {"error": {"message": message, "code": 1}}


NO_PART = "which is no part of an answer"
FAILURES: dict[str, tuple[Answer, str]] = {
    "no key": (says(401, error("No key.")), "refuses the key (401: No key): name the environment"),
    "forbidden": (says(403, ""), "refuses the key (403): name the environment variable"),
    "no model": (says(404, error("unknown")), "has no model 'served-model' at this address (404"),
    "too large": (says(413, "big"), "refuses the request as too large (413: big): show the model"),
    "a field": (says(422, {"detail": "stream"}), "refuses a field of the request (422: stream)"),
    "busy": (says(429, error("slow down"), Retry_After="0"), "has too many requests (429: slow"),
    "broken": (says(500, "<b>trace\x1b</b>"), "refuses the request (500: <b>trace\ufffd</b>)"),
    "redirect": (says(302, "", Location="http://else.where/"), "redirects to 'http://else.where/'"),
    "error in 200": (says(200, error("no memory")), "failed during the answer (no memory)."),
    "error in a stream": (streams(piece("A"), event(error("died"))), "during the answer (died)."),
    "llama.cpp's error": (streams(b'error: {"message":"full"}\n\n'), "during the answer (full)."),
    "no JSON": (streams(b"data: {\n\n"), f"sent '{{', {NO_PART}"),
    "another page": (says(200, "<html>"), f"sent '<html>', {NO_PART}"),
    "a list": (streams(b"data: [1]\n\n"), f"sent '[1]', {NO_PART}"),
    "deep": (streams(b"data: " + b"[" * 200_000 + b"\n"), NO_PART),
    "no end": (streams(piece("A road")), "ended in the middle of the answer, after 6 characters"),
    "cut": (streams(piece("A road"), cut=True), "broke the connection in the middle of the answer"),
    "nothing": (streams(), "ended in the middle of the answer, after 0 characters"),
    "only the end": (streams(b"data: [DONE]\n\n"), "ended without an answer: see its log."),
    "a number as text": (
        streams(event({"choices": [{"delta": {"content": [{"text": 5}]}}]})), NO_PART),
    "compressed": (says(200, "x", Content_Encoding="gzip"), "sends 'gzip' unasked"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_each_failure_is_one_sentence(fake: FakeServer, server: Server, name: str) -> None:
    fake.answer, words = FAILURES[name]
    with pytest.raises(ServerFailed) as found:
        asked(server)
    said = str(found.value)
    assert words in said and server.host in said and "\n" not in said and said.endswith(".")


def test_a_server_that_is_busy_is_asked_again_before_its_first_byte(
    fake: FakeServer, server: Server
) -> None:
    busy = says(429, "", Retry_After="0.01")
    fake.answer = in_turn(busy, says(503, "", Retry_After="0"), streams(*whole()))
    assert (asked(server).text, asked(server).retries) == (TEXT, 0)
    fake.answer = in_turn(busy, streams(*whole()))
    assert asked(server).retries == 1
    fake.answer = says(429, "", Retry_After="3600")  # longer than the limit: not waited for
    with pytest.raises(ServerFailed, match="has too many requests"):
        asked(server)
    fake.asked.clear()
    fake.answer = streams(piece("A"), cut=True)  # control: begun, so it is not asked for again
    with pytest.raises(ServerFailed):
        asked(server)
    assert len(fake.asked) == 1


@pytest.mark.loads
def test_the_limit_of_time_holds_whatever_is_sent(fake: FakeServer, server: Server) -> None:
    short = replace(server, timeout_s=0.2)
    for answer in (streams(*[piece("x")] * 10_000, pause_s=0.01), _silent):
        fake.answer = answer
        with pytest.raises(ServerFailed, match=r"did not finish within 0\.2 s|was silent for"):
            asked(short)


def _silent(handler: object) -> None:
    threading.Event().wait(1.0)


def test_a_cancel_closes_the_connection_and_keeps_what_came(
    fake: FakeServer, server: Server
) -> None:
    fake.answer = streams(*[piece("x")] * 10_000, pause_s=0.005)
    seen = list[str]()
    found = protocol.ask(server, BODY, lambda text, _: seen.append(text), lambda: len(seen) > 3)
    assert found.stop == "cancelled" and found.text == seen[-1] and len(seen) < 100
    assert fake.broken.wait(5.0)
    fake.answer = _silent
    with pytest.raises(Cancelled):
        protocol.ask(server, BODY, cancelled=lambda: True)


@pytest.mark.parametrize("lines", [True, False])
def test_endless_text_does_not_fill_the_memory(
    fake: FakeServer, server: Server, monkeypatch: pytest.MonkeyPatch, lines: bool
) -> None:
    monkeypatch.setattr(protocol, "MOST_BYTES", 2**20)
    monkeypatch.setattr(protocol, "MOST_LINE", 2**18)
    part = piece("x" * 1000) if lines else b"x" * 2**16
    fake.answer = streams(*[part] * 100_000)
    tracemalloc.start()
    with pytest.raises(ServerFailed, match="MiB without an end"):
        asked(server)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25


@pytest.fixture
def closed() -> Iterator[Server]:
    """An address at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return Server(f"http://127.0.0.1:{port}/v1", "m", timeout_s=5.0)


def test_a_server_that_is_not_there(closed: Server, fake: FakeServer) -> None:
    with pytest.raises(ServerFailed, match="refuses connections: start the server"):
        asked(closed)
    with pytest.raises(ServerFailed, match=r"nowhere\.invalid has no address"):
        asked(replace(closed, url="http://nowhere.invalid/v1"))
    with pytest.raises(ServerFailed, match="does not speak https"):
        asked(replace(closed, url=fake.url.replace("http:", "https:")))


def test_a_key_goes_into_the_header_and_into_no_message(
    fake: FakeServer, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = replace(server, api_key_env="OUR_KEY")
    with pytest.raises(ServerFailed, match="the environment variable OUR_KEY, which is not set"):
        asked(keyed)
    monkeypatch.setenv("OUR_KEY", "sk-very-secret")
    asked(keyed)
    assert fake.headers[0]["Authorization"] == "Bearer sk-very-secret"
    fake.answer = says(401, error("Incorrect key sk-very-secret"))
    with pytest.raises(ServerFailed) as found:
        asked(keyed)
    assert "secret" not in str(found.value) and "correct it in OUR_KEY" in str(found.value)
    monkeypatch.setenv("OUR_KEY", "zwei\nZeilen")
    with pytest.raises(ServerFailed, match="has characters that no key has"):
        asked(keyed)
