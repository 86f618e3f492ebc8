"""The verdict as HTML: a heading, every model's figures, and nothing unescaped; what is spoken."""

from engine.analysis.compared import ComparedModel, verdict
from tests.ui.answers import result
from ui.compare.card_board import markup


def one(label: str, *runs: float) -> ComparedModel:
    results = (result(vision=(ms, "measured", None)) for ms in runs)
    return ComparedModel(label, "llava", tuple(results))


def test_labels_are_escaped() -> None:
    html = markup(verdict([one("<b>A", 40.0), one("<i>B", 10.0)], {}))
    assert not any(tag in html for tag in ("<b>A", "<i>B"))
    assert "&lt;i&gt;B was first" in html
