"""The command line: `python -m engine COMMAND`.

Boundary: finds the command and chooses the exit code for what it raises: 2 for what the user can
mend, 1 for anything else.  What a command does is its module's, in engine/cli/.
"""

from __future__ import annotations

import argparse
import io
import os
import sys

from engine.cli import (
    bench,
    compare,
    demo,
    download,
    draft,
    import_files,
    listing,
    report,
    verify,
)
from engine.cli.common import say
from engine.errors import StageScopeError

COMMANDS = (compare, draft, verify, bench, report, listing, import_files, download, demo)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m engine", description=str(__doc__).split("\n")[0]
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
