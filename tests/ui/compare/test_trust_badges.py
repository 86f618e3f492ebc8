"""What the badges beside a run's figures say."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec import structs

from engine.machine.load import MachineLoad
from engine.storage.result_rows import ResultRow
from engine.types import RunResult
from engine.verify import certificates
from tests.ui.answers import CACHED, result
from tests.ui.verify.made import PLACE, certificate, verdicts
from ui.compare import trust_badges
from ui.compare.trust_badges import Badge

pytestmark = pytest.mark.usefixtures("cache_dir")  # without certificates


def badges(run: RunResult, *loads: MachineLoad | None) -> list[Badge]:
    row = ResultRow.from_result(run, certificates.certificate_status(run))
    return trust_badges.badges(row, loads)


def certifiable() -> RunResult:
    """A run of the model and the place of certificate()."""
    run = result()
    model = dataclasses.replace(run.model, digest="d" * 32)
    return dataclasses.replace(run, model=model, environment=PLACE)


def test_badges_name_both_times_of_a_cached_stage() -> None:
    _, (words, _, _) = badges(result(vision=CACHED))
    assert words == "vision from cache: 2.00 ms, computed in 40.0 ms"


def test_a_run_on_a_busy_machine_is_marked_with_its_figures() -> None:
    quiet = MachineLoad(0.0, 1000.0, 990.0, 2, 1, waited_ms=1.0, others=0.1)
    loaded = dataclasses.replace(quiet, waited_ms=600.0, others=1.5)
    for load, marks in ((None, []), (quiet, []), (loaded, ["busy machine"])):
        found = badges(dataclasses.replace(result(), machine_load=load))
        assert [badge[0] for badge in found] == ["unverified", *marks]
    run = dataclasses.replace(result(), machine_load=quiet)
    assert badges(run, loaded, quiet)[1][0] == "busy machine"  # one of the counted runs
    assert len(badges(run, quiet)) == 1
    assert "others used 1.5 of 2 cores" in found[1][2] and "60% of its time" in found[1][2]


def test_cold_and_hooked_runs_are_marked() -> None:
    assert [b[0] for b in badges(result())] == ["unverified"]
    marked = [b[0] for b in badges(result(cold=True, mode="hooked"))]
    assert marked == ["unverified", "cold run", "hooked"]
    fast = dataclasses.replace(result(), backend="compiled")
    assert [b[0] for b in badges(fast)] == ["unverified", "compiled"]
    assert badges(fast)[0][2].endswith(" --backend compiled`")


def test_a_result_says_which_certificate_covers_it() -> None:
    run = certifiable()
    assert badges(run)[0][:2] == ("unverified", "gray")
    kept = certificate()
    certificates.store(kept)
    words, colour, why = badges(run)[0]
    assert (words, colour) == ("same answer as generate(), timing verified", "green")
    assert kept["hash"][:12] in why
    other = dataclasses.replace(run, environment=PLACE | {"device": "cuda:0"})
    words, colour, why = badges(other)[0]
    assert (words, colour) == ("not covered: device cuda:0 (cpu verified)", "orange")
    assert kept["hash"][:12] in why


def test_times_are_not_verified_where_a_check_of_times_is_open() -> None:
    certificates.store(certificate(verdicts(changed={("stage3", ""): "unresolved"})))
    run = certifiable()
    words, _, why = badges(run)[0]
    assert words == "same answer as generate()" and "not resolved" in why.lower()
    assert "the time of stage 3" in why and "probe" not in why


def test_what_was_perturbed_or_in_a_batch_is_marked_and_no_markup() -> None:
    row = structs.replace(
        ResultRow.from_result(result()), perturb="**drop** 0.3", batch=4, paused_ms=5.0
    )
    marks = [badge[0] for badge in trust_badges.badges(row)][1:]
    assert marks[:2] == ["after a pause", "in a batch of 4"] and "**" not in marks[2]
