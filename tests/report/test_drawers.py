"""Documents show what a model has said as text; an HTML file holds all it shows."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from engine.report import drawers, export
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph, Table
from tests import fabricate

EVIL = "</td><script>alert(1)</script><img src=x onerror=alert(1)> \"&'<svg onload=x>"


class Reader(HTMLParser):
    """Tags, attributes and text of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of two models, one of them with a name and errors that would be markup."""
    rows: list[dict[str, Any]] = fabricate.pair(7)
    for row in rows:
        row["model"] = {"ev": "ev", "vl": EVIL}[row["model"]]
        row["text"] = EVIL
    rows.append(fabricate.failed("ev", "s9", EVIL))
    run = fabricate.run(tmp_path_factory.mktemp("runs") / "r", rows)
    return export.write([run], "html")


@pytest.mark.loads
def test_nothing_runs_and_nothing_is_fetched(html: str) -> None:
    found = read(html)
    assert not {"img", "link", "iframe", "object", "embed"} & set(found.tags)
    (script,) = re.findall("<script>(.*?)</script>", html, re.DOTALL)  # ours; the others are data
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert found.tags.count("script") == 1 + html.count('<script type="application/gzip"')
    assert any("<script>alert(1)</script>" in words for words in found.words)  # as text
    names = {name for name, _ in found.attributes}
    assert not [name for name in names if name.startswith("on")] and "src" not in names
    outside = [v for n, v in found.attributes if n in ("href", "xlink:href") and v]
    assert not [value for value in outside if not value.startswith("#")]
    assert "url(http" not in html and "@import" not in html
    assert "default-src 'none'" in html
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"'<]+", html)) <= namespaces


@pytest.mark.parametrize(
    "evil",
    [EVIL, "[x](http://a.b)", "![x](y)", "a|b\n\n# c", "`x`", "http://a.b", "$x$", "~~~", "***"],
)
def test_markdown_shows_it_as_text_too(tmp_path: Path, evil: str) -> None:
    shown = drawers.escape(evil)
    assert "\n" not in shown and "://" not in shown
    assert "<" not in shown and ">" not in shown
    literal = re.sub(r"&(lt|gt|amp);", "", shown)
    assert not re.search(r"(?<!\\)[\\`*_{}\[\]#|~&!$](?![\\`*_{}\[\]#|~&!$/])", literal)
    run = fabricate.run(tmp_path / "r", [fabricate.failed(error=evil)])
    table = [line for line in export.write([run], "md").splitlines() if "| ev |" in line]
    assert any(shown in line for line in table)


def test_contents_lead_to_every_part(html: str) -> None:
    reader = read(html)
    links = [value for name, value in reader.attributes if name == "href"]
    ids = {value for name, value in reader.attributes if name == "id"}
    assert "#results" in links and "#figures" in links
    assert all(link and link.startswith("#") and link[1:] in ids for link in links)
    assert html.index("<nav") > html.index("Verdict: ") and html.index("<svg") < html.index("<nav")


BLOCKS: list[Block] = [
    Heading(2, "Gate"),
    Paragraph("Worse."),
    Table("", ("model", "ms"), (("ev", "1"), ("video", "10"))),
    Heading(3, "ev"),
    Paragraph("2 of 2 answered"),
    Bullets(("one", "two"), "Not proved:"),
    ChartBlock("A chart.", lambda: "<svg/>"),
]


def test_a_terminal_indents_the_parts_of_a_section() -> None:
    assert drawers.terminal(BLOCKS).splitlines() == [
        *("Gate", "", "Worse.", "", "model  ms", "ev      1", "video  10", ""),
        *("ev", "  2 of 2 answered", "  Not proved:", "    one", "    two", "  A chart."),
    ]
