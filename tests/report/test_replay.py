"""The replay: recorded times, cached stages that say so, and a page of its own."""

from typing import Any

import pytest
from msgspec import structs

from engine.report import replay
from engine.storage.result_rows import ResultRow
from tests import fabricate
from tests.report.test_drawers import EVIL, read
from tests.ui.answers import CACHED, result

pytestmark = pytest.mark.loads


def row(**changes: object) -> ResultRow:
    """Tokens "Be", "cause" and "." at 100, 110 and 120 ms."""
    return structs.replace(ResultRow.from_result(result()), **{"text_ends": (2, 7, 8)} | changes)


def drawn(row: ResultRow) -> dict[str, Any]:
    (answer,) = replay.answers([("One", row)])
    return answer


def test_a_cached_stage_plays_at_its_cached_time_and_says_so() -> None:
    found = drawn(ResultRow.from_result(result(vision=CACHED)))
    assert found["bars"][2][1:3] == [30, 2.0]
    assert "vision 2.00 ms (read from the cache; when computed: 40.0 ms)" in found["stages"]
    assert "vision 40.0 ms," in drawn(row())["stages"]  # control


def test_a_failure_and_a_sample_of_a_batch_have_no_replay() -> None:
    rows = fabricate.parsed([fabricate.failed(), *fabricate.batch(["a", "b"])])
    assert [drawn(one)["pieces"] for one in rows] == [([], [])] * 3
    (single,) = fabricate.parsed([fabricate.row()])
    assert drawn(single)["pieces"][0]  # control


def test_a_page_of_one_sample_runs_only_our_script_and_all_it_says_is_data() -> None:
    html = replay.page(EVIL, EVIL, [(EVIL, row(text=EVIL))], "dark")
    found = read(html)
    assert not {"img", "iframe", "link", "form", "object"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "src"]
    assert html.count("</script>") == 3 and "color-scheme: dark" in html
    assert "script-src 'sha256-" in html and 'id="list"' not in html
