"""Odd addresses: every parameter of a page with values that no widget writes."""

import ast
import random
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from engine.types import OFFERED
from ui.widgets.choices import link_of

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("compare", "benchmark", "verify", "results", "published", "models")
SHARED = {"results": "drafts_", "published": "drafts_"}  # of a part that both pages have
_PARAMETER = re.compile(rf"({'|'.join(PAGES)}|drafts)_[a-z_]+")
ODD = (
    *("", " ", "0", "1", "-1", "1.5", "999999999999", "1" * 400, "1e400", "nan", "inf", "0x10"),
    *("1_0", "+5", "true", "True", "None", "null", "[]", "{}", "\x00", "a\x00b", "\n", "%", "%zz"),
    *("../../etc/passwd", "/etc/passwd", "..\\..\\x", "file:///etc/passwd", "%2e%2e%2f", "~", "/"),
    *("é", "\u202e", "\U0001f600", "\ufffe", "３", "٣", "x" * 5_000, "<b>'\"", "`$x$`", "a,b"),
)
USUAL = (
    *("All", "The first", "By id", "One for all", "Each record's own", "Forced", "By turns"),
    *("Use", "Refresh", "Off", "Hooked", "Eager", "Compiled", "Tiny llava", "demo", "3"),
    *("Tiny video-llava", "Tiny eventgpt", "Demo scenes", "own", "Own files", "tiny-llava"),
    *("overview", "samples", "compare", "total", "natural", "runs", "imported", "comparing"),
)
Address = list[tuple[str, str]]


def parameters(page: str) -> list[str]:
    """Every name in the app's code that may be a parameter of this page, and one that is none."""
    found = {link_of(page, name) for name in OFFERED}  # made of the page's name
    found |= {f"{page}_{name}" for name in ("sample_tokens", "split_parts", "unknown")}
    for path in [*(ROOT / "ui").rglob("*.py"), *(ROOT / "pages").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            own = (page, SHARED.get(page, page))
            if isinstance(text, str) and _PARAMETER.fullmatch(text) and text.startswith(own):
                found.add(text)
    return sorted(found)


def addresses(page: str, number: int, seed: int = 0, more: Sequence[str] = ()) -> list[Address]:
    """Every parameter of the page, with one value or several: shared out among so many addresses.

    more: values of this server, such as names of runs and ids of jobs.
    """
    generator = random.Random(f"{page} {seed}")
    names = generator.sample(parameters(page), len(parameters(page)))
    found: list[Address] = []
    for index in range(number):
        some = [*names[index::number], generator.choice(names)]
        address: Address = []
        for name in some:
            values = [
                generator.choice((*ODD, *USUAL, *more)) for _ in range(generator.choice((1, 2, 3)))
            ]
            if generator.random() < 0.4:
                values = [values[0]] * generator.choice((2, 3))
            address += [(name, value) for value in values]
        generator.shuffle(address)
        found.append(address)
    return found


def query(address: Address) -> str:
    """Percent-encoded, each pair by itself, so that a name may come several times."""
    return "?" + "&".join(f"{quote(name)}={quote(value, safe='')}" for name, value in address)
