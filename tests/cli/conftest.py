"""Commands called in this process."""

from collections.abc import Callable

import pytest

from engine.__main__ import main

Call = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls a command: its exit code, standard output and standard error."""

    def called(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return called


@pytest.fixture
def refused(call: Call) -> Refused:
    """Calls a command with a user error: the one line that it writes."""

    def line(*arguments: object) -> str:
        code, out, err = call(*arguments)
        assert code == 2 and not out and err.count("\n") == 1
        return err

    return line
