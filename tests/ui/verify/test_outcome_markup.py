"""HTML that lets no word of a model or a file be anything but text."""

from html.parser import HTMLParser

import pytest

from ui.verify import evidence

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


class Tags(HTMLParser):
    """The tags that a browser would see, and their attributes' names."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words += data


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
