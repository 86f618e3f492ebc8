"""Evidence of a check: HTML that lets no word of a model or a file be anything but text."""

from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from engine.report.blocks import Paragraph
from tests.ui.verify.made import verdicts
from ui.verify import evidence

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


class Tags(HTMLParser):
    """The tags that a browser would see, and their attributes' names."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize(
    "html",
    [
        evidence.mark("failed", EVIL),
        evidence.heads([(EVIL, EVIL)]),
        evidence.about(EVIL),
        evidence.tokens(EVIL, [EVIL, EVIL], [1, 2], 1),
    ],
)
def test_words_stay_words(html: str) -> None:
    tags = Tags(html)
    assert not tags.seen & {"script", "img"} and "onerror" not in tags.attributes


def test_an_answer_that_ends_where_the_other_goes_on_says_so() -> None:
    assert "ends here" in evidence.tokens("plain", [" a"], [1], 1)


def test_a_long_equal_beginning_is_left_out_and_counted() -> None:
    html = evidence.tokens("plain", [f"w{i}" for i in range(200)], list(range(200)), 150)
    assert "130 equal tokens" in html and ">w129<" not in html and ">w130<" in html
    assert ">w0<" in evidence.tokens("plain", ["w0", "w1"], [0, 1], 1)


@pytest.mark.parametrize(("n", "words"), [(5, "and the range, on"), (6, "95 % interval")])
def test_five_pairs_have_no_interval_of_95_percent(n: int, words: str) -> None:
    row = next(one for one in verdicts() if one.check == "stage3")
    row = replace(row, evidence={**row.evidence, "alone_ms": [1.0] * n, "probe_ms": [1.1] * n})
    said = [part.text for part in evidence.DRAWN["stage3"](row) if isinstance(part, Paragraph)]
    assert words in " ".join(said)
