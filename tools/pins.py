"""Writes requirements.txt: the installed version of each dependency of pyproject.toml.

`python -m tools.pins`, in an environment whose tests have passed.
"""

import tomllib
from importlib.metadata import version

from packaging.requirements import Requirement

from engine.settings import PROJECT

FILE = PROJECT / "requirements.txt"
HEAD = "# The versions that are tested; written by `python -m tools.pins`, from pyproject.toml.\n"


def dependencies() -> list[Requirement]:
    """What a wheel asks for."""
    table = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return [Requirement(one) for one in table["project"]["dependencies"]]


def main() -> None:
    lines = [f"{one.name}=={version(one.name).partition('+')[0]}\n" for one in dependencies()]
    FILE.write_text(HEAD + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
