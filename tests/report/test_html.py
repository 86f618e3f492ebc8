"""One file, nothing from outside, nothing that runs, whatever a model has said."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from engine import report
from engine.report import markdown
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
    return "".join(report.write([run], "html"))


def test_nothing_runs_and_nothing_is_fetched(html: str) -> None:
    found = read(html)
    assert not {"script", "img", "link", "iframe", "object", "embed"} & set(found.tags)
    names = {name for name, _ in found.attributes}
    assert not [name for name in names if name.startswith("on")] and "src" not in names
    outside = [v for n, v in found.attributes if n in ("href", "xlink:href") and v]
    assert not [value for value in outside if not value.startswith("#")]
    assert "url(http" not in html and "@import" not in html
    assert "default-src 'none'" in html
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"'<]+", html)) <= namespaces


def test_what_a_model_says_is_shown_as_text(html: str) -> None:
    assert any("<script>alert(1)</script>" in words for words in read(html).words)


def test_charts_are_inside_with_words_beside_them(html: str) -> None:
    found = read(html)
    assert found.tags.count("svg") == found.tags.count("figure") == 4
    labels = [value for name, value in found.attributes if name == "aria-label" and value]
    assert any(value.startswith("Medians of the stages") for value in labels)
    for name in ("load", "preprocess", "vision", "decode"):
        assert f">{name}</text>" in html
    assert "@media print" in html


def test_the_check_can_fail() -> None:
    found = read(f"<table><td>{EVIL}</table>")
    assert {"script", "img"} <= set(found.tags)


@pytest.mark.parametrize(
    "evil",
    [EVIL, "[x](http://a.b)", "![x](y)", "a|b\n\n# c", "`x`", "http://a.b", "$x$", "~~~", "***"],
)
def test_markdown_shows_it_as_text_too(tmp_path: Path, evil: str) -> None:
    shown = markdown.escape(evil)
    assert "\n" not in shown and "://" not in shown
    assert "<" not in shown and ">" not in shown
    literal = re.sub(r"&(lt|gt|amp);", "", shown)
    assert not re.search(r"(?<!\\)[\\`*_{}\[\]#|~&!$](?![\\`*_{}\[\]#|~&!$/])", literal)
    run = fabricate.run(tmp_path / "r", [fabricate.failed(error=evil)])
    table = [line for line in "".join(report.write([run], "md")).splitlines() if "| ev |" in line]
    assert any(shown in line for line in table)


@pytest.mark.parametrize(
    ("text", "line"), [("- a", r"\- a"), ("1. a", r"1\. a"), ("1.5 ms", r"1\.5 ms"), ("=", r"\=")]
)
def test_a_line_begins_no_list(text: str, line: str) -> None:
    assert markdown._line(text) == line and markdown.escape("-3.1") == "-3.1"


def test_contents_lead_to_every_part(html: str) -> None:
    reader = read(html)
    links = [value for name, value in reader.attributes if name == "href"]
    ids = {value for name, value in reader.attributes if name == "id"}
    assert "#results" in links and "#figures" in links
    assert all(link and link.startswith("#") and link[1:] in ids for link in links)
    assert html.index("<nav") > html.index("Verdict: ") and html.index("<svg") < html.index("<nav")
