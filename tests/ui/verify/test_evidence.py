"""Evidence of any check as tables, whatever its form."""

import pytest
from msgspec.structs import replace

from engine.report.blocks import Paragraph
from tests.ui.verify.made import verdicts
from ui.verify import evidence


@pytest.mark.parametrize(("n", "words"), [(5, "and the range, on"), (6, "95 % interval")])
def test_five_pairs_have_no_interval_of_95_percent(n: int, words: str) -> None:
    row = next(one for one in verdicts() if one.check == "stage3")
    row = replace(row, evidence={**row.evidence, "alone_ms": [1.0] * n, "probe_ms": [1.1] * n})
    said = [part.text for part in evidence.DRAWN["stage3"](row) if isinstance(part, Paragraph)]
    assert words in " ".join(said)
