"""The checks that `stagescope app` puts before the app."""

import asyncio
from typing import Any

import pytest

from ui.server import OwnPage


def answered(kind: str, **headers: str) -> list[dict[str, Any]]:
    """What is sent for a request with these headers."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        accept = {"type": "websocket.accept"}
        start = {"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]}
        await send(accept if scope["type"] == "websocket" else start)

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(OwnPage(app)({"type": kind, "headers": pairs}, None, send))  # type: ignore[arg-type]
    return sent


@pytest.mark.parametrize(
    ("origin", "own"),
    [
        ({}, True),
        ({"origin": "http://127.0.0.1:8501"}, True),
        ({"origin": "https://127.0.0.1:8501"}, True),
        ({"origin": "HTTP://127.0.0.1:8501"}, True),
        ({"origin": "http://127.0.0.1:8502"}, False),
        ({"origin": "http://localhost:8501"}, False),
        ({"origin": "null"}, False),
        ({"origin": ""}, False),
    ],
)
def test_only_its_own_page_is_answered(origin: dict[str, str], own: bool) -> None:
    (opened,) = answered("websocket", host="127.0.0.1:8501", **origin)
    assert opened["type"] == ("websocket.accept" if own else "websocket.close")
    got = answered("http", host="127.0.0.1:8501", **origin)
    assert got[0]["status"] == (200 if own else 403)
    assert ((b"x", b"y") in got[0]["headers"]) == own
    assert {(b"x-frame-options", b"DENY")} <= {*got[0]["headers"]}
    assert b"frame-ancestors 'none'" in dict(got[0]["headers"])[b"content-security-policy"]
