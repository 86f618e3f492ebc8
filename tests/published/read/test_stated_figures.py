"""Stated figures against rows, whole or with values missing."""

from __future__ import annotations

import pytest

from engine.published.read import cells


@pytest.mark.parametrize(
    ("stated", "rows", "checked"),
    [
        (2.0, 3, True),  # right
        (9.0, 3, True),  # wrong, and nothing is missing
        (4.0, 4, False),  # a fourth value of 10 would make it
        (2.0, 4, True),  # the mean of those that are there
        (1.0, 4, True),  # a fourth value would have to be negative
        (90.0, 4, True),  # or 177 times the others
    ],
)
def test_a_mean_of_two(stated: float, rows: int, checked: bool) -> None:
    claim = cells.checked("summary.a_avg", stated, ("a", "mean"), [1.0, 2.0, 3.0], rows)
    assert (claim.rows is not None) == checked
    if checked:
        assert claim.rows == 2.0 and claim.of == "the mean of a over 3 rows"
    else:
        assert claim.of == "not checked: 1 of 4 values of a are missing"


def test_a_sum_lacks_what_is_missing() -> None:
    found = [1.0, 2.0, 3.0]
    assert cells.checked("x", 8.0, ("a", "sum"), found, 4).rows is None
    assert cells.checked("x", 8.0, ("a", "sum"), found, 3).rows == 6.0
    assert cells.checked("x", 5.0, ("a", "sum"), found, 4).rows == 6.0


def test_the_number_of_rows_and_what_a_key_states() -> None:
    for rows in ({"m": 4}, {}):
        claim = cells.claim("a.n_samples", 4.0, [("m", "")], {}, rows)
        assert claim.rows == rows.get("m")
    assert cells.statistic_of("stage1_time_avg") == ("stage1_time", "mean")
    assert cells.statistic_of("total_accepted_tokens") == ("accepted_tokens", "sum")
    assert cells.statistic_of("c_ratio") == ("", "")
