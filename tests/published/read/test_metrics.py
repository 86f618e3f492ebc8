"""H with times: flat rows of both models' stages, recognised by their keys."""

from __future__ import annotations

import pytest

from engine.published.audit import audit
from engine.published.read import file_summary
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


def test_both_models_and_their_stages() -> None:
    file = read(made.metrics())
    assert str(file.group) == "H text-only/estimates" and file.unit == "s" and not file.problems
    assert (file.models, file.draft, file.target) == (("egpt", "vl"), "egpt", "vl")
    mine, other = (file.of(model)[0] for model in file.models)
    assert mine.times["draft_time"] == 0.4 and mine.tokens == 40 and mine.context == 637
    assert mine.ids is None and mine.text is None
    assert other.times == {"prefill_time": 0.3, "generation_time": 1.0, "total_time": 1.3}
    assert other.tokens == 20 and other.ids and len(other.ids) == 20
    assert file.of("vl", corrected=True)[0].context == 2075  # 2,048 were counted twice


def test_every_number_of_a_row_is_a_figure_too() -> None:
    found = file_summary.as_dict(read(made.metrics()))
    row = made.metrics()["results"][0]
    numbers = {key: value for key, value in row.items() if isinstance(value, (int, float))}
    del numbers["sample_idx"]
    means = {key: figure["mean"] for key, figure in found["figures"].items()}
    assert means == pytest.approx(numbers)


def test_stated_means_are_checked() -> None:
    claims = {claim.path.split(".")[-1]: claim for claim in read(made.metrics()).claims}
    for key in ("vision_time_avg", "egpt_prefill_time_avg", "vl_total_time_avg", "speedup_avg"):
        assert claims[key].rows == pytest.approx(claims[key].stated), key
    assert claims["output_tokens_avg"].rows == 20  # the script wrote 0
    (wrong,) = [one for one in audit(read(made.metrics())) if one.rule == "summaries"]
    assert "output_tokens_avg is stated as 0, but" in wrong.message


def test_rows_alone_and_without_the_target_are_known_too() -> None:
    rows = made.metrics()["results"]
    assert read(rows).models == ("egpt", "vl")
    mine = [{key: value for key, value in row.items() if not key.startswith("vl_")} for row in rows]
    assert len(read({"results": mine}).of("egpt")) == 5


def test_a_further_time_of_a_model_is_no_stage() -> None:
    value = made.metrics()
    before = read(value).of("vl")[0]
    for row in value["results"]:
        row["vl_verify_time"] = 0.5
    record = read(value).of("vl")[0]
    assert record.times == {**before.times, "verify_time": 0.5}
    assert record.stage_sum == before.stage_sum and record.ms("total") == before.ms("total")


def test_ids_of_the_draft_are_read_where_they_are_there() -> None:
    value = made.metrics()
    for index, row in enumerate(value["results"]):
        row["draft_tokens"] = made.ids(index + 50, 12)
    file = read(value)
    assert file.of("egpt")[0].ids == tuple(made.ids(50, 12)) and not file.problems


def test_an_assumed_acceptance_is_said_to_be_one() -> None:
    (found,) = [one for one in audit(read(made.metrics())) if one.rule == "estimate"]
    assert found.message == (
        "The stated acceptance of 40.0% is the same number in all 5 rows: it was assumed, not "
        "measured."
    )
    value = made.metrics()
    value["results"][1]["estimated_acceptance_rate"] = 0.5
    assert not [one for one in audit(read(value)) if one.rule == "estimate"]
