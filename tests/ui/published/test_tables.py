"""Tables of recorded files: recorded and corrected, not measured and never 0, names by evidence."""

from engine.published.claims.published_report import files_table
from engine.published.read import answer_pairs
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read
from ui.published import draft_view


def test_many_models_are_counted() -> None:
    assert files_table([read(made.pairs("F3"))]).rows[0][3].endswith("and 1 more")


def test_a_verdict_says_no_more_than_the_figures() -> None:
    told = {
        kind: draft_view.verdict(one)
        for kind, one in answer_pairs.variants(read(made.legacy(6)), 5, True).items()
    }
    assert "without times of both models" in told["raw"]
    assert "slower" in told["main"] and "faster" not in told["main"]
    few = answer_pairs.variants(read(made.legacy(5)), 5, True)["main"]
    assert "Too few clips for an interval" in draft_view.verdict(few)
