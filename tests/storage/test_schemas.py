"""What is read back is of the types that readers rely on, and unknown keys stay as they are."""

import json
import random
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.results_table import frame
from engine.plain_files import JSON_FAULTS, checked, reason
from engine.report import export
from engine.storage import json_lines, run_store
from engine.storage.json_lines import DamagedLines
from engine.storage.result_rows import ResultRow
from engine.storage.run_store import Run
from tests import fabricate
from tests.conftest import slow_unless

ODD: tuple[Any, ...] = (None, "x", -1, 0, 1.5, True, [], {}, [[]], 10**30, 1e308, "\u202e")


def line(value: object) -> bytes:
    return json.dumps(value).encode()


def refused(data: bytes, parse: Callable[[bytes], Any] = ResultRow.parse) -> str:
    """Why these bytes are no such line."""
    with pytest.raises(JSON_FAULTS) as caught:
        parse(data)
    return reason(caught.value)


@pytest.mark.parametrize(
    "row",
    [fabricate.row(), fabricate.row(cached_ms=3.0, forced=True), fabricate.failed(),
     fabricate.batch(["s0", "s1"])[0], fabricate.row() | {"later": {"a": [1, None]}}],
)  # fmt: skip
def test_a_row_comes_back_as_it_was(row: dict[str, Any]) -> None:
    found = ResultRow.parse(line(row))
    assert ResultRow.parse(line(found.as_dict())) == found
    plain = {key: one for key, one in row.items() if not isinstance(one, dict | list)}
    assert {key: getattr(found, key) for key in plain} == plain


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"total_ms": "1"}, "Expected `float | null`, got `str` - at `$.total_ms`"),
        ({"total_ms": 1e30}, "<= 1000000000000.0 - at `$.total_ms`"),
        ({"total_ms": -1}, ">= 0.0 - at `$.total_ms`"),
        ({"new_tokens": 2.5}, "Expected `int | null`, got `float` - at `$.new_tokens`"),
        ({"repeat": True}, "Expected `int`, got `bool` - at `$.repeat`"),
        ({"phase": "odd"}, "Invalid enum value 'odd' - at `$.phase`"),
        ({"stages": {"load": {"name": "load", "ms": 1}}}, "missing required field `start_ms`"),
        ({"token_ms": [1, "x"]}, "$.token_ms[1]"),
        ({"total_ms": None}, "It is an answer and has no `total_ms`"),
        ({"stages": None}, "It is an answer and has no `stages`"),
        ({"batch": 2}, "It is an answer and has no `batch_id`"),
        ({"new_tokens": 931}, "`new_tokens` is 931 and `token_ids` has"),
        ({"token_ms": [1.0]}, "and `token_ms` has 1"),
        ({"stages": {"load": {"name": "load", "start_ms": 0, "ms": -5e9}}}, ">= -1.0"),
        ({"decode_config": {"temperature": 9}}, "temperature is 9.0: choose a value from"),
        (
            {"machine_load": {"began_s": 1, "wall_ms": 1, "cpu_ms": 1, "cores": 0, "threads": 1}},
            "$.machine_load.cores",
        ),
        ({"tensors": [{"name": "x", "shape": [-1], "dtype": "y", "bytes": 1}]}, "shape[0]"),
    ],
)
def test_another_type_is_named_with_its_key(change: dict[str, Any], told: str) -> None:
    assert told in refused(line(fabricate.row() | change))


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"1", b"null", b"{", b"NaN", b'{"a": NaN}', b'{"a": 1e999}', b'{"a": Infinity}',
     b'{"a": ' + b"9" * 5000 + b"}", b'{"a": "\xff"}', b'{"a": "\\ud800"}', b"\0" * 100,
     b'{"a":' * 50_000, '{"a": "ü"}'.encode("utf-16"), b"\xef\xbb\xbf{}"],
)  # fmt: skip
def test_what_is_no_object_of_plain_json_is_refused(data: bytes) -> None:
    assert 0 < len(refused(data, checked)) <= 80


def made(folder: Path, rows: Sequence[Any]) -> Run:
    """A run folder that holds these rows, whatever they are; its plan has those with names."""
    names: dict[str, list[str]] = {
        key: list(dict.fromkeys(one for row in rows if (one := row.get(key)) and type(one) is str))
        for key in ("model", "sample")
    }
    models, samples = (filter(str.isprintable, some) for some in names.values())
    run_store.create(fabricate.header([*models], [*samples]), folder).close()
    (folder / run_store.RESULTS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run_store.read(folder)


@pytest.mark.loads
@pytest.mark.parametrize(
    "base",
    [fabricate.row(), pytest.param(fabricate.batch(["s0", "s1"])[0], marks=pytest.mark.slow)],
    ids=["alone", "batch"],
)
def test_every_key_of_a_row_may_hold_an_odd_value(tmp_path: Path, base: dict[str, Any]) -> None:
    """Each is a row or a fault that is told; no report ends over it."""
    odd = product(base, enumerate(ODD))
    rows = [base | {"sample": f"{key}-{number}"} | {key: value} for key, (number, value) in odd]
    run = made(tmp_path / "run", [*rows, fabricate.row("vl", "good")])
    table = frame([run])
    assert len(table) > 50 and len(run.damage.broken) > 100 and "good" in set(table["sample"])
    assert export.write([run], "md")


def mutated(value: Any, draw: random.Random, share: float) -> Any:
    """The value with some parts of it replaced by odd ones."""
    if draw.random() < share:
        return draw.choice(ODD)
    if isinstance(value, dict):
        return {key: mutated(one, draw, share) for key, one in value.items()}
    return [mutated(one, draw, share) for one in value] if isinstance(value, list) else value


@pytest.mark.loads
@pytest.mark.parametrize("seed", slow_unless([0], range(4)))
def test_rows_changed_at_random_end_nothing(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    for number in range(2):
        source = [*fabricate.pair(3), *fabricate.batch(["a", "b"]), fabricate.failed(sample="f")]
        rows = [mutated(row, draw, draw.choice((0.002, 0.01, 0.1))) for row in source]
        run = made(tmp_path / f"{number}", rows)
        for form in ("md", "csv", "json"):
            assert export.write([run], form)
        run_store.reopen(run.folder).close()


def test_a_line_that_is_too_long_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE", 100)
    path, damage = tmp_path / "a.jsonl", DamagedLines()
    path.write_bytes(b'{"n": 1}\n{"n": "' + b"x" * 950 + b'"}\n{"n": 3}\n' + b"y" * 99)
    found = list(json_lines.read(path, checked, damage))
    assert [value["n"] for _, value in found] == [1, 3] and damage.broken == [2] and damage.torn
    assert json_lines.at(path, found[1][0], checked) == {"n": 3}
    assert "at most 100 are allowed" in damage.reasons[0]
