"""The command line: `stagescope COMMAND`, or `python -m engine COMMAND`.

Boundary: finds the command and chooses the exit code for what it raises: 2 for what the user can
mend, 1 for anything else.  What a command does is its module's, in engine/cli/.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from engine.cli.common import say
from engine.errors import StageScopeError
from engine.quoting import quoted

# Each command's module in engine/cli/, in the order of the help; imported when it is called.
COMMANDS = {
    "compare": "compare",
    "draft": "draft",
    "verify": "verify",
    "bench": "bench",
    "report": "report",
    "samples": "listing",
    "models": "listing",
    "import": "import_files",
    "download": "download",
    "demo": "demo",
}


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser(given).parse_args(given)
    _print_anywhere()
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except StageScopeError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        say("Stopped.")
        return 130
    except OSError as error:  # a full disk, or a reader such as `head` that has gone
        if not isinstance(error, BrokenPipeError):
            say(f"The output cannot be written ({error.strerror}): make room.")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left would fail again at exit
        return 1


def _print_anywhere() -> None:
    """A terminal that lacks a character shows its code; no result is lost for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


MAX_MESSAGE = 500
_QUOTED = re.compile(r"'((?:[^'\\]|\\.){78,})'")  # a value that argparse repeats whole


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence; the usage is long and has a flag of its own."""

    def error(self, message: str) -> NoReturn:
        told = _QUOTED.sub(lambda found: quoted(found[1]), message)
        self.exit(2, f"{told[:1].upper()}{told[1:MAX_MESSAGE]}: see {self.prog} --help.\n")


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """Knows the command that is given, or all of them where none is."""
    installed = Path(sys.argv[0]).stem == "stagescope"
    prog = "stagescope" if installed else "python -m engine"
    parser = _Parser(prog=prog, description=str(__doc__).split("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    called = COMMANDS.get(given[0]) if given else None
    for name in [called] if called else dict.fromkeys(COMMANDS.values()):
        importlib.import_module(f"engine.cli.{name}").add(commands)
    return parser


def command() -> int:
    """The process's own command line: SIGTERM stops it as Ctrl-C does, with a sentence."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return main()


if __name__ == "__main__":
    sys.exit(command())
