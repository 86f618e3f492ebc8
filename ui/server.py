"""The app behind checks of its own: `python -m ui.server PORT HOST`, which `stagescope app` runs.
A page of another origin, such as another port of this machine, may neither open the app's WebSocket
nor show it in a frame.  `streamlit run` has no place for such a check."""

import sys

import streamlit as st
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.settings import PROJECT

LOCAL = ("localhost", "127.0.0.1", "[::1]")
HEADERS = [(b"content-security-policy", b"frame-ancestors 'none'"), (b"x-frame-options", b"DENY")]
REFUSED = b"This request comes from another page: open StageScope by its own address."


class OwnPage:
    """Refuses what another page asks for; no page may show an answer in a frame."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        sent = dict(scope["headers"])
        origin, host = sent.get(b"origin"), sent.get(b"host", b"").lower()
        own = (b"http://" + host, b"https://" + host)
        strange = origin is not None and origin.lower() not in own
        if strange and scope["type"] == "websocket":
            return await send({"type": "websocket.close", "code": 1008})

        async def framed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        if strange:
            await framed({"type": "http.response.start", "status": 403})
            return await framed({"type": "http.response.body", "body": REFUSED})
        await self.app(scope, receive, framed)


def main(port: int, host: str) -> None:
    script = str(PROJECT / "app.py")
    sys.argv = [script]  # its folder has .streamlit/config.toml
    named = f"[{host}]" if ":" in host else host
    hosts = [*LOCAL, *({named} - {*LOCAL})]
    app = st.App(script, middleware=[Middleware(OwnPage)])
    app.run(config={"server.port": port, "server.address": host, "server.allowedHosts": hosts})


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
