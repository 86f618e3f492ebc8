"""The comparison of two checkouts sees what differs, and nothing that a clock or a place makes."""

import json

import pytest

from tools.same_results import comparable


@pytest.mark.parametrize(
    ("first", "second", "exact", "equal"),
    [
        ('{"tokens": 3, "total_ms": 4.5}', '{"tokens": 3, "total_ms": 9.1}', False, True),
        ('{"tokens": 3, "total_ms": 4.5}', '{"tokens": 3, "total_ms": null}', False, False),
        ('{"tokens": 3}', '{"tokens": 4}', False, False),
        ('{"total_ms": 4.5}', '{"total_ms": 9.1}', True, False),
        ("A: 3 tokens in 4.5 ms", "A: 3 tokens in 9.1 ms", False, True),
        ("A: 3 tokens in 4.5 ms", "A: 4 tokens in 4.5 ms", False, False),
        ("/here/x on 2026-01-01 10:00", "/here/x on 2026-01-02 11:00", True, True),
    ],
)
def test_measured_values_alone_may_differ(
    first: str, second: str, exact: bool, equal: bool
) -> None:
    assert (comparable(first, exact, {}) == comparable(second, exact, {})) is equal


def test_a_csv_is_compared_by_the_names_of_its_columns() -> None:
    names = [f"column{number}" for number in range(12)]
    row = {name: str(number) for number, name in enumerate(names)}

    def csv(order: list[str], row: dict[str, str]) -> list[str]:
        text = "\n".join([",".join(order), ",".join(row[name] for name in order)])
        return comparable(text, True, {})

    base, other_order = csv(names, row), csv(names[::-1], row)
    assert base[1:] == other_order[1:]
    assert base[0] != other_order[0]
    assert csv(names, row | {"column3": "30"})[1:] != base[1:]


def test_a_page_is_compared_by_its_text() -> None:
    def page(style: str, tag: str, words: str) -> list[str]:
        text = f"<!DOCTYPE html><style>{style}</style><{tag}>{words}</{tag}><svg><g>1</g></svg>"
        return comparable(text, True, {})

    assert page("p {}", "p", "3 tokens") == page("q {}", "td", "3 tokens")
    assert page("p {}", "p", "3 tokens") != page("p {}", "p", "4 tokens")


def test_a_place_is_replaced_by_its_name() -> None:
    text = json.dumps({"question": "see /tmp/a/x"})
    assert comparable(text, True, {"/tmp/a": "HOME"})[1].endswith('"see HOME/x"')
