"""Messages repeat at most 80 characters of a value; numbers, plurals and lists are words."""

import pytest

from engine import quoting

DEEP: list[object] = []
for _ in range(500):
    DEEP = [DEEP]
BOMB: tuple[object, ...] = ()
for _ in range(60):
    BOMB = (BOMB, BOMB)
LONG = (
    "a" * 10**6,
    10**5000,
    -(10**300),
    ["x" * 1000] * 1000,
    {"k" * 999: ["v" * 999]},
    DEEP,
    BOMB,
)


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (8.04, "8.0 tok/s"), (1218.3, "1,218 tok/s")]
)
def test_rates_have_their_unit(value: float | None, shown: str) -> None:
    assert quoting.rate(value) == shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations(seconds: float, words: str) -> None:
    assert quoting.duration(seconds) == words


def test_sizes_have_their_unit() -> None:
    assert [quoting.gib(n) for n in (12, 2048, 3 * 2**20, 2**31)] == [
        "12 bytes", "2.0 KiB", "3.0 MiB", "2.0 GiB",
    ]  # fmt: skip
