"""What a card says about a job and its result."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from engine.jobs.run_job import RunView
from engine.machine.load import MachineLoad
from engine.verify import certificates
from tests.ui.answers import CACHED, result
from tests.ui.verify.made import PLACE, certificate
from ui.compare import cards


def view(**changes: Any) -> RunView:
    start = RunView(
        id="j",
        model="one",
        state="queued",
        stage="",
        position=0,
        queued_ms=1234.0,
        text="",
        new_tokens=0,
        ttft_ms=None,
        tokens_per_s=None,
        error="",
        result=None,
        request=result().request,
    )
    return dataclasses.replace(start, **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"position": 1}, "Queued: 1 run ahead"),
        ({"position": 2}, "Queued: 2 runs ahead"),
        ({"position": 0}, "Queued: next"),
        ({"state": "loading"}, "Loading the model …"),
        ({"state": "running", "stage": "vision"}, "Running: vision …"),
        (
            {"state": "running", "stage": "compile", "stopping": True},
            "Cancelling: compiling cannot be interrupted. A new run waits until it ends.",
        ),
        (
            {"state": "loading", "stopping": True},
            "Cancelling: loading cannot be interrupted. A new run waits until it ends.",
        ),
        ({"state": "running", "stage": "decode", "stopping": True}, "Cancelling …"),
        ({"state": "done", "result": result()}, "Done"),
        ({"state": "failed"}, "Failed"),
        ({"state": "cancelled"}, "Cancelled"),
    ],
)
def test_the_status_says_where_a_job_is(changes: dict[str, Any], words: str) -> None:
    assert cards.status(view(**changes)) == words


def test_a_streaming_job_shows_its_count_and_no_rate_before_the_second_token() -> None:
    one = view(state="running", new_tokens=1, ttft_ms=80.0)
    assert cards.status(one) == "1 token · first after 80.0 ms"
    more = view(state="running", new_tokens=9, ttft_ms=80.0, tokens_per_s=55.5)
    assert cards.status(more) == "9 tokens · first after 80.0 ms · 55.5 tok/s"


def test_the_figures_have_units_and_a_formula_each() -> None:
    figures = cards.figures(result())
    assert figures["New tokens"] == "3" and figures["Context"] == "12"
    assert figures["TTFT"] == "100 ms" and figures["TPOT"] == "37.5 ms"
    assert set(figures) == set(cards.FORMULAS)


def test_one_token_has_no_time_per_token() -> None:
    figures = cards.figures(result(tokens=1))
    assert figures["TPOT"] == "–" and figures["tok/s"] == "–"


@pytest.fixture
def _no_certificates(cache_dir: Path) -> None:
    """The runs' folder is the test's own, and empty."""


@pytest.mark.usefixtures("_no_certificates")
def test_badges_name_both_times_of_a_cached_stage() -> None:
    _, (words, _, _) = cards.badges(result(vision=CACHED))
    assert words == "vision from cache: 2.00 ms, computed in 40.0 ms"


@pytest.mark.usefixtures("_no_certificates")
def test_a_run_on_a_busy_machine_is_marked_with_its_figures() -> None:
    quiet = MachineLoad(0.0, 1000.0, 990.0, 2, 1, waited_ms=1.0, others=0.1)
    loaded = dataclasses.replace(quiet, waited_ms=600.0, others=1.5)
    for load, marks in ((None, []), (quiet, []), (loaded, ["busy machine"])):
        found = cards.badges(dataclasses.replace(result(), machine_load=load))
        assert [badge[0] for badge in found] == ["unverified", *marks]
    assert "others used 1.5 of 2 cores" in found[1][2] and "60% of its time" in found[1][2]


@pytest.mark.usefixtures("_no_certificates")
def test_cold_and_hooked_runs_are_marked() -> None:
    assert [b[0] for b in cards.badges(result())] == ["unverified"]
    marked = [b[0] for b in cards.badges(result(cold=True, mode="hooked"))]
    assert marked == ["unverified", "cold run", "hooked"]
    fast = dataclasses.replace(result(), backend="compiled")
    assert [b[0] for b in cards.badges(fast)] == ["unverified", "compiled"]
    assert cards.badges(fast)[0][2].endswith(" --backend compiled`")


@pytest.mark.usefixtures("_no_certificates")
def test_a_result_says_which_certificate_covers_it() -> None:
    run = result()
    run = dataclasses.replace(
        run, model=dataclasses.replace(run.model, digest="d" * 32), environment=PLACE
    )
    assert cards.badges(run)[0][:2] == ("unverified", "gray")
    kept = certificate()
    certificates.store(kept)
    assert cards.badges(run)[0][:2] == (f"verified {kept['hash'][:12]}", "green")
    other = dataclasses.replace(run, environment=PLACE | {"device": "cuda:0"})
    words, colour, why = cards.badges(other)[0]
    assert (words, colour) == ("not covered: device cuda:0 (cpu verified)", "orange")
    assert kept["hash"][:12] in why
