"""HTML that holds what it was given, to scale and escaped."""

from __future__ import annotations

import re

from ui.models.model_markup import FREE, BarPart, bar, facts

SLY = '<img src=x onerror="1">'


def test_facts_let_nothing_in_and_break_paths_at_slashes() -> None:
    html = facts([("From", f"/a/b{SLY}"), (SLY, "1")], SLY)
    assert "<img" not in html and html.count("&lt;img") == 3
    assert "<dd>/<wbr>a/<wbr>b&lt;img" in html


def test_a_bar_is_to_scale_and_says_itself_in_words() -> None:
    parts = [
        BarPart("M", 2**30, "#111"),
        BarPart("none", 0, "#222"),
        BarPart(FREE, 3 * 2**30, None),
    ]
    html = bar("cpu", parts)
    assert re.findall(r"width: ([\d.]+)%", html) == ["25.000"]
    assert 'role="img" aria-label="cpu: M 1.0 GiB, none 0 bytes, free 3.0 GiB"' in html
    assert html.count("model-key") - html.count("model-keys") == 3  # each part is named below


def test_a_bar_of_nothing_does_not_divide_by_it() -> None:
    html = bar(SLY, [BarPart(SLY, 0, "#111")])
    assert "<img" not in html and "width" not in html
