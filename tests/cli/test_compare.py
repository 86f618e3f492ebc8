"""compare: what its cards tell of a certificate that is not there."""

from __future__ import annotations

from engine.cli import compare


def test_an_unverified_answer_names_the_flags_that_verify_it() -> None:
    row = {"model": "ev", "verified": None, "pixels": "fast", "backend": {"ran": "compiled"}}
    told = compare._verified(row)
    assert "`python -m engine verify --models ev --backend compiled --pixels fast`" in told
    plain = compare._verified(row | {"pixels": "exact", "backend": {"ran": "generate"}})
    assert "`python -m engine verify --models ev`" in plain
    assert compare._verified(row | {"verified": "ab" * 32}).startswith("verified: certificate abab")
