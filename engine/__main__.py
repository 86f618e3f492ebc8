"""The command line: `stagescope COMMAND`, or `python -m engine COMMAND`.

Boundary: finds the command and maps exceptions to exit codes: 2 for a user error, 1 for anything
else.  The commands are modules in engine/cli/.
"""

import argparse
import errno
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from engine.errors import StageScopeError
from engine.plain_files import advice, reason
from engine.quoting import quoted, shown

# command -> module in engine/cli/, imported when called; in the order of the help.
COMMANDS = {
    "app": "app",
    "compare": "compare",
    "explain": "studies",
    "draft": "studies",
    "verify": "studies",
    "bench": "bench",
    "report": "report",
    "bundle": "report",
    "gate": "report",
    "samples": "listing",
    "models": "listing",
    "download": "listing",
    "import": "import_files",
    "demo": "demo",
}


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    try:
        from engine.cli.common import say  # imports much, which Ctrl-C may end

        options = _parser(given).parse_args(given)
        _print_anywhere()
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except StageScopeError as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        return 130
    except OSError as error:  # a full disk, or a closed pipe, as to `head`
        if not isinstance(error, BrokenPipeError):
            named = f"{shown(error.filename)} cannot be used"
            what = named if error.filename else "The output cannot be written"
            say(f"{what} ({reason(error)}): {advice(error, 'choose another place')}.")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # flushing the rest at exit would fail again
        return 2 if error.errno == errno.ENAMETOOLONG else 1  # the user's name


def _print_anywhere() -> None:
    """A character that the terminal lacks is printed as its code instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


MAX_MESSAGE = 500
_QUOTED = re.compile(r"'((?:[^'\\]|\\.){78,})'")  # a long value that argparse repeats in full


class _Parser(argparse.ArgumentParser):
    """Prints an error in one sentence, without the usage, which --help prints."""

    def error(self, message: str) -> NoReturn:
        text = _QUOTED.sub(lambda match: quoted(match[1]), message)
        self.exit(2, f"{text[:1].upper()}{text[1:MAX_MESSAGE]}: see {self.prog} --help.\n")


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    installed = Path(sys.argv[0]).stem == "stagescope"
    prog = "stagescope" if installed else "python -m engine"
    parser = _Parser(prog=prog, description=str(__doc__).partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    called = COMMANDS.get(given[0]) if given else None
    for name in [called] if called else dict.fromkeys(COMMANDS.values()):
        importlib.import_module(f"engine.cli.{name}").add(commands)
    if called:
        parser.prog = f"{prog} {given[0]}"  # of the message about an unknown option
    return parser


def command() -> int:
    """The command line of a process: SIGTERM does the same as Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return main()


if __name__ == "__main__":
    sys.exit(command())
