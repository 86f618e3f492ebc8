"""What a planted fault is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

Patch = Any  # pytest.MonkeyPatch, or whatever has its setattr
LONG_S = 0.03  # a wait that no tiny model's run can hide


@dataclass(frozen=True)
class Fault:
    """One fault.

    checks: checks of the verifier that must fail, none where it cannot notice the fault; family:
    of the tiny model it is verified on; tests: files (of the tests, without the verifier's own
    runs) that might notice it; item: what it is a fault of; runs: warm runs that its check needs.
    """

    name: str
    what: str
    family: str
    checks: frozenset[str]
    plant: Callable[[Patch], None]
    tests: tuple[str, ...]
    item: str = ""
    runs: int = 1


def replaces(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[[Patch], None]]:
    """Makes a fault of a function: it runs in place of `owner.name`, which it gets first."""

    def fault_of(function: Callable[..., Any]) -> Callable[[Patch], None]:
        def plant(patch: Patch) -> None:
            original = getattr(owner, name)

            @wraps(original)  # some callers look at its parameters
            def other(*given: Any, **named: Any) -> Any:
                return function(original, *given, **named)

            patch.setattr(owner, name, other)

        return plant

    return fault_of


def fault(
    name: str,
    family: str,
    checks: str,
    plant: Callable[[Patch], None],
    tests: str,
    what: str,
    item: str = "tokens",
    runs: int = 1,
) -> Fault:
    """A fault with `checks` and `tests` as words."""
    files = tuple(f"tests/{one}.py" for one in tests.split())
    return Fault(name, what, family, frozenset(checks.split()), plant, files, item, runs)
