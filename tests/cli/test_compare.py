"""compare: what its cards tell of a certificate that is not there."""

from __future__ import annotations

from engine.cli import compare


def test_an_unverified_answer_names_the_flags_that_verify_it() -> None:
    row = {"model": "ev", "verified": None, "pixels": "fast", "backend": {"ran": "compiled"}}
    told = compare._verified(row)
    assert "`python -m engine verify --models ev --backend compiled --pixels fast`" in told
    plain = compare._verified(row | {"pixels": "exact", "backend": {"ran": "generate"}})
    assert "`python -m engine verify --models ev`" in plain
    standing = {"state": "verified", "certificate": "ab" * 32, "missing": []}
    assert compare._verified(row | {"standing": standing}).startswith("verified: certificate abab")


def test_a_result_beyond_its_certificate_says_what_is_missing() -> None:
    missing = ["sampling", "96 tokens (48 verified)"]
    standing = {"state": "not covered", "certificate": "ab" * 32, "missing": missing}
    row = {"model": "ev", "verified": None, "standing": standing}
    told = compare._verified(row)
    assert told == "not covered: sampling, 96 tokens (48 verified) (certificate abababababab)"
    old = compare._verified({"model": "ev", "verified": "ab" * 32})
    assert old.startswith("not covered: the certificate does not record what it covers")
