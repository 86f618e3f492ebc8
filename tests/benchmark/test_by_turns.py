"""Two processes take turns: the order, the end of one, and what is refused."""

from pathlib import Path

import pytest

from engine.benchmark import by_turns
from engine.errors import BadInput, StoreError

# An engine that only notes its turns; arguments: a name, a file, turns, an exit code.
ENGINE = """
import os
import sys
name, log, turns, code = sys.argv[1:]
open(f"{log}.{name}", "w").write(str(os.getpid()))
print("The run is saved somewhere.")
for turn in range(int(turns)):
    print("waits for its turn", flush=True)
    if not sys.stdin.readline():
        sys.exit(9)
    with open(log, "a") as file:
        print(name, turn, "begins", file=file)
    if name == "killer":
        os.kill(int(open(f"{log}.b").read()), 9)
    with open(log, "a") as file:
        print(name, turn, "ends", file=file)
sys.exit(int(code))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "engine" / "benchmark").mkdir(parents=True)
    (folder / "engine" / "__init__.py").touch()
    (folder / "engine" / "__main__.py").write_text(ENGINE)
    (folder / "engine" / "benchmark" / "by_turns.py").touch()
    return folder


def turns(checkout: Path, log: Path, *sides: tuple[str, str, str]) -> tuple[int, list[str]]:
    """The exit code, and which side had each turn."""
    commands = [(checkout, (name, str(log), many, code)) for name, many, code in sides]
    code = by_turns.run(commands, per_repeat=2)
    lines = log.read_text().splitlines()
    assert [line.replace("begins", "ends") for line in lines[::2]] == lines[1::2]  # never both
    return code, [line.removesuffix(" begins") for line in lines[::2]]


def test_one_works_at_a_time_and_the_first_changes_with_the_repeat(
    checkout: Path, tmp_path: Path
) -> None:
    code, order = turns(checkout, tmp_path / "log", ("a", "5", "0"), ("b", "5", "1"))
    assert code == 1  # some results of b failed
    assert order == ["a 0", "b 0", "a 1", "b 1", "b 2", "a 2", "b 3", "a 3", "a 4", "b 4"]


def test_a_side_that_ends_early_leaves_the_other_alone(checkout: Path, tmp_path: Path) -> None:
    _, order = turns(checkout, tmp_path / "log", ("a", "1", "0"), ("b", "3", "0"))
    assert order == ["a 0", "b 0", "b 1", "b 2"]


@pytest.mark.parametrize(("many", "code"), [("0", "2"), ("1", "2"), ("0", "1"), ("0", "0")])
def test_a_side_that_fails_ends_both(checkout: Path, tmp_path: Path, many: str, code: str) -> None:
    with pytest.raises(StoreError, match=f"The BASE run, .*too early .exit code {code}."):
        turns(checkout, tmp_path / "log", ("a", many, code), ("b", "50", "0"))


def test_a_side_that_is_killed_while_it_waits_ends_both(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"The NEW run, .*too early \(exit code -9\)"):
        turns(checkout, tmp_path / "log", ("killer", "5", "0"), ("b", "5", "0"))


def test_a_folder_that_cannot_take_turns_is_refused(checkout: Path, tmp_path: Path) -> None:
    by_turns.refuse(checkout)
    with pytest.raises(BadInput, match="is not a checkout of StageScope"):
        by_turns.refuse(tmp_path)
    (checkout / "engine" / "benchmark" / "by_turns.py").unlink()  # an older one
    with pytest.raises(BadInput, match="that has --against"):
        by_turns.refuse(checkout)
