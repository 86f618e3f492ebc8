"""What the badges beside a run's figures say."""

import dataclasses

import pytest
from msgspec import structs

from engine.machine.load import MachineLoad
from engine.storage.result_rows import ResultRow
from engine.types import RunResult
from engine.verify import certificates
from tests.ui.answers import CACHED, result
from tests.ui.verify.made import PLACE, certificate
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


def test_what_was_perturbed_or_in_a_batch_is_marked_and_no_markup() -> None:
    row = structs.replace(
        ResultRow.from_result(result()), perturb="**drop** 0.3", batch=4, paused_ms=5.0
    )
    marks = [badge[0] for badge in trust_badges.badges(row)][1:]
    assert marks[:2] == ["after a pause", "in a batch of 4"] and "**" not in marks[2]
