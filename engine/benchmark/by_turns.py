"""Two checkouts run the same plan by turns, so that their times can be compared.

Each side is an ordinary `bench --turns ID` in its own checkout and process.  Before each piece of
work (a model to load, a warm-up run, a sample) it prints WAITS and waits for a line.  One side
works at a time, so what changes on the machine changes for both.  Each piece follows one of the
other side, because a process that works twice in a row is a few percent faster the second time.
Who is first changes with each repeat.  Both use the same cores, because the cores of a shared host
differ more than the sides.  The headers of both runs record the ID.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

from engine import settings
from engine.errors import BadInput, Cancelled, StoreError
from engine.quoting import shown

WAITS = "waits for its turn"


def wait_for_turn() -> None:
    """In the process of a side: Cancelled if the other end has closed."""
    print(WAITS, flush=True)  # noqa: T201
    if not sys.stdin.readline():
        raise Cancelled("The other side of the comparison has stopped.")


class Side:
    """A process that runs the plan; it prints its problems on standard error."""

    def __init__(self, name: str, checkout: Path, arguments: Sequence[str]) -> None:
        self._words = f"The {name} run, of {shown(checkout)},"
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        if checkout == settings.PROJECT:  # for another one its own folder decides
            environment[settings.VARIABLES["models_file"]] = str(settings.load().models_file)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine", *arguments],
            cwd=checkout,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def waits(self) -> bool:
        """Whether it waits for its turn; False after its end, StoreError if it was ended."""
        assert self.process.stdout is not None
        if any(line.rstrip("\n") == WAITS for line in self.process.stdout):
            return True
        if self.process.wait() not in (0, 1):
            raise self.stopped()
        return False

    def stopped(self) -> StoreError:
        return StoreError(
            f"{self._words} ended too early (exit code {self.process.returncode}): mend what it "
            "printed, if anything, and start both again with another --out."
        )

    def work(self) -> bool:
        """One turn; whether it waits for another."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, which waits() reports
            os.write(self.process.stdin.fileno(), b"\n")  # no buffer, which close() would write
        return self.waits()


def refuse(checkout: Path) -> None:
    if not (checkout / "engine" / "benchmark" / "by_turns.py").is_file():
        raise BadInput(
            f"--against {shown(checkout)} is not a checkout of StageScope that has --against: name "
            "the folder of one; a finished run keeps no code that could run again."
        )


def run(commands: Sequence[tuple[Path, Sequence[str]]], per_repeat: int) -> int:
    """Runs `python -m engine ARGUMENTS` of each checkout (BASE, then NEW) by turns, `per_repeat` in
    a repeat; the greater exit code."""
    with ExitStack() as stack:
        sides = []
        for name, (checkout, arguments) in zip(("BASE", "NEW"), commands, strict=True):
            sides.append(Side(name, checkout, arguments))
            process = stack.enter_context(sides[-1].process)
            stack.callback(process.terminate)  # before it is waited for; no effect after its end
        for side in sides:
            if not side.waits():
                raise side.stopped()
        waiting = sides
        if hasattr(os, "sched_setaffinity"):  # Linux
            cores = sorted(os.sched_getaffinity(0))[-settings.load().threads :]
            for side in sides:
                os.sched_setaffinity(side.process.pid, cores)
        for turn in count(1):
            if not waiting:
                break
            waiting = [side for side in waiting if side.work()]
            if turn % per_repeat == 0:
                waiting.reverse()
        return max(side.process.returncode for side in sides)
