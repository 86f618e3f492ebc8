"""A server of the tests' own that speaks the OpenAI-compatible protocol and can fail."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = ("A road", " ahead", ", a car", ".")
USAGE = {"prompt_tokens": 52, "completion_tokens": 9, "total_tokens": 61}


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def piece(text: str | None = None, **more: Any) -> bytes:
    delta = {"role": "assistant"} if text is None else {"content": text}
    return event({"choices": [{"delta": delta, "finish_reason": None} | more]})


def whole(words: tuple[str, ...] = WORDS, usage: object = USAGE, stop: str = "stop") -> list[bytes]:
    """The events of an answer."""
    told = [event({"choices": [], "usage": usage})] if usage else []
    end = [piece("", finish_reason=stop), *told, b"data: [DONE]\n\n"]
    return [piece(), *(piece(word) for word in words), *end]


class FakeServer(ThreadingHTTPServer):
    """Answers GET from `pages` (path -> JSON or a status), POST by `answer`, and keeps requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        listed = {"data": [{"id": "served-model", "owned_by": "vllm"}]}
        self.pages: dict[str, Any] = {"/v1/models": listed, "/version": {"version": "0.30.1"}}
        self.answer: Callable[[_Handler], None] = streams(*whole())
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.broken = threading.Event()  # a client closed its connection in the middle

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.broken.set()


class _Handler(BaseHTTPRequestHandler):
    server: FakeServer

    def do_GET(self) -> None:
        found = self.server.pages.get(self.path, 404)
        if isinstance(found, int):
            return says(found, "no such page")(self)
        says(200, found)(self)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(json.loads(body))
        self.server.headers.append(dict(self.headers))
        self.server.answer(self)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


Answer = Callable[[_Handler], None]


def says(status: int, value: object, **headers: str) -> Answer:
    """A whole reply: JSON, or text as it is."""

    def answer(handler: _Handler) -> None:
        text = isinstance(value, str)
        body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "text/plain" if text else "application/json")
        handler.send_header("Content-Length", str(len(body)))
        for name, content in headers.items():
            handler.send_header(name.replace("_", "-"), content)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def streams(*parts: bytes, pause_s: float = 0.0, cut: bool = False) -> Answer:
    """An event stream; `cut` ends it without the end that HTTP wants."""

    def answer(handler: _Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        if cut:
            handler.send_header("Content-Length", str(sum(map(len, parts)) + 100))
        handler.end_headers()
        for part in parts:
            handler.wfile.write(part)
            handler.wfile.flush()
            if pause_s:
                time.sleep(pause_s)
        handler.close_connection = True

    return answer


def in_turn(*answers: Answer) -> Answer:
    """One answer for each request, the last one for all that follow."""
    left = list(answers)
    return lambda handler: (left.pop(0) if len(left) > 1 else left[0])(handler)


@contextmanager
def serving() -> Iterator[FakeServer]:
    server = FakeServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
