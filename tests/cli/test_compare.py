"""compare: what its cards tell of a certificate that is not there."""

from msgspec.structs import replace

from engine.cli import compare
from engine.storage.result_rows import AskedAndRan, ResultRow, Standing

HASH = "ab" * 32


def test_an_unverified_answer_names_the_flags_that_verify_it() -> None:
    row = ResultRow(model="ev", sample="s", repeat=0, phase="measured",
                    backend=AskedAndRan(ran="compiled"))  # fmt: skip
    told = compare._verified(row)
    assert "`python -m engine verify --models ev --backend compiled`" in told
    plain = compare._verified(replace(row, backend=AskedAndRan(ran="generate")))
    assert "`python -m engine verify --models ev`" in plain
    told = compare._verified(replace(row, standing=Standing("verified", HASH)))
    assert told == "same answer as generate(), timing verified (certificate abababababab)."
    open_ = compare._verified(replace(row, standing=Standing("verified", HASH, ("the probe",))))
    assert open_.startswith("same answer as generate() (") and open_.endswith(": the probe.")


def test_a_result_beyond_its_certificate_says_what_is_missing() -> None:
    status = Standing("not covered", HASH, ("sampling", "96 tokens (48 verified)"))
    row = ResultRow(model="ev", sample="s", repeat=0, phase="measured", standing=status)
    told = compare._verified(row)
    assert told == "not covered: sampling, 96 tokens (48 verified) (certificate abababababab)"
