"""app: the app in a browser, in a process that checks who asks (ui/server.py)."""

import argparse
import os
import socket
import sys
from typing import Any

from engine import settings
from engine.cli.common import command, flag
from engine.errors import BadInput
from engine.plain_files import reason
from engine.quoting import quoted

PORT, HOST = 8501, "127.0.0.1"


def add(commands: Any) -> None:
    flags = {
        "--port": flag(int, f"default: {PORT}", PORT),
        "--host": flag(str, f"the address under which it is opened (default: {HOST})", HOST),
    }
    command(commands, "app", _app, "open the app in a browser", flags)


def _app(options: argparse.Namespace) -> int:
    host, port = options.host.strip(), options.port
    settings.load()  # refuses what no page could use
    if not 1 <= port <= 65535:
        raise BadInput(f"--port is {port:,}: choose a number from 1 to 65,535.")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name == "posix")
            tried.bind((host, port))
    except (OSError, UnicodeError) as error:
        raise BadInput(
            f"{quoted(f'{host}:{port}')} cannot be listened on ({reason(error)}): choose another "
            "--port, or an address of this machine as --host."
        ) from error
    folders = (str(settings.PROJECT), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    # Without the current folder on the path, which may have an app.py of its own.
    given = [sys.executable, "-P", "-m", "ui.server", str(port), host]
    os.execve(sys.executable, given, environment)
