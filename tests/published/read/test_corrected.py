"""Warm-ups and where they are left out; prompts and cut ids; bars and pairs as recorded."""

import statistics
from typing import Any

import pytest

from engine.published.audit import audit
from engine.published.read import answer_pairs, corrected, file_summary
from engine.published.read.file_summary import bars
from engine.published.read.record_types import ResultFile
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read


def means(file: ResultFile, model: str = "eventgpt") -> dict[str, float]:
    """The corrected means of a model's stages."""
    found = file_summary.models(file)[model]
    after = {key: stage["corrected"] for key, stage in found["stages"].items()}
    return {key: one["mean"] for key, one in after.items() if one}


def uneven() -> Any:
    """B whose first answer is longer than the others: leaving the whole record out would show."""
    value = made.legacy()
    first = value["eventgpt_results"][0]
    first["stage4_time"], first["total_time"] = 1.2, first["total_time"] + 0.4
    first["token_ids"], first["tokens"] = made.ids(0, 19), 19
    return value


def test_only_the_stage_that_shows_a_warm_up_and_the_total_lose_it() -> None:
    """The first answer's decoding and tokens count: 4 records, not 3."""
    file = read(uneven())
    (mine, _) = file_summary.models(file).values()
    found = means(file)
    assert found["stage4_time"] == pytest.approx((1.2 + 3 * 0.8) / 4)
    assert found["total_time"] == pytest.approx(sum(found[f"stage{n}_time"] for n in (1, 2, 3, 4)))
    assert mine["tokens_corrected"] == pytest.approx((19 + 3 * 11) / 4)
    vision = mine["stages"]["stage3_time"]["corrected"]
    assert vision and vision["n"] == 3 and vision["mean_without_first"] == vision["mean"]
    assert vision["mean"] == pytest.approx(0.005)


def test_the_time_to_the_end_of_the_prefill_loses_the_warm_up_too() -> None:
    value = made.five()
    for row in value["results"]:
        mine = row["eventgpt"]
        mine["prefill_complete_time"] = sum(mine[f"stage{n}_time"] for n in (1, 2, 3, 4))
    file = read(value)
    found = means(file)
    stages = sum(found[f"stage{n}_time"] for n in (1, 2, 3, 4))
    assert found["prefill_complete_time"] == pytest.approx(stages) == pytest.approx(0.104)
    recorded = file_summary.models(file)[file.models[0]]["stages"]["prefill_complete_time"]["mean"]
    assert recorded == pytest.approx(0.104 + (0.1 - 0.008) / 4)


@pytest.mark.parametrize("count", [4, 400])
def test_whatever_is_corrected_is_said(count: int) -> None:
    """400 records: the first moves their mean by less than a hundredth and is left in it."""
    value = made.frames(count)
    value["eventgpt"]["samples"][0] |= {"s3_time": 0.13, "total_time": 0.29}
    file = read(value)
    stage = file_summary.models(file)["eventgpt"]["stages"]["s3_time"]
    said = any(finding.rule == "warm_up" for finding in audit(file))
    assert stage["corrected"]
    assert said == (stage["corrected"]["mean"] != stage["mean"]) == (count < 9)


def test_a_warm_up_belongs_to_one_model_of_a_row() -> None:
    """Rows that hold both models have one path, and the keys of each are its own."""
    rows = made.flat(6)
    rows[0]["egpt_stage2_time"], rows[0]["egpt_time"] = 0.9, 1.92
    file = read(rows)
    mine, other = file.of("egpt", corrected=True)[0], file.of("llava", corrected=True)[0]
    assert "cold:stage2_time" in mine.marks and mine.times["stage2_time"] == pytest.approx(0.01)
    assert not other.marks and other.times == file.of("llava")[0].times
    assert [one.model for one in audit(file) if one.rule == "warm_up"] == ["egpt"]
    value = made.speculation(6)
    for index, row in enumerate(value["results"]):
        row |= {"vl_time_ms": 1100.0, "vl_prefill_ms": 300.0 if index else 1100.0}
        del row["egpt_prefill_ms"]
    file = read(value)
    assert "cold:prefill_ms" in file.of("vl", corrected=True)[0].marks
    (one,) = [one for one in audit(file) if one.rule == "warm_up"]
    assert one.model == "vl" and one.paths == ("results[0]",)
    assert "1.44 times as long" in one.message


@pytest.mark.parametrize("value", [made.flat(), made.legacy(), made.five(), made.parallel()])
def test_corrected_stages_and_what_they_leave_are_the_corrected_total(value: Any) -> None:
    file = read(value)
    for bar in bars(file):
        total = statistics.fmean(record.ms("total") or 0 for record in file.of(bar.model, True))
        assert total == pytest.approx(sum(bar.parts.values()))


def test_a_warm_up_and_a_placeholder_are_in_the_recorded_bars_alone() -> None:
    """Decode is prefill and steps of every record, the first's prefill as the others'."""
    value = made.five()
    first = value["results"][0]["eventgpt"]
    first["stage4_time"] += 0.9
    first["total_time"] += 0.9
    (before, placeholder), (after, other) = bars(read(value), corrected=False), bars(read(value))
    assert after.parts["decode"] == pytest.approx(90 + 440)
    assert before.parts["decode"] == pytest.approx(90 + 440 + 900 / 4)
    assert after.parts["vision"] == pytest.approx(8.0)
    assert before.parts["vision"] == pytest.approx((100 + 3 * 8) / 4)
    assert "vision" in placeholder.parts and "vision" not in other.parts
    assert other.notes == ("not measured separately: vision",)


def test_the_files_own_figure_stands_beside_the_ids_as_they_are() -> None:
    """A target that begins as the draft does, but for the prompt in front of it."""
    value = made.legacy()
    value["speculative_decoding"]["acceptance_rate"] = 0.04
    for index, row in enumerate(value["videollava_results"]):
        row["token_ids"] = [*made.PROMPT, *made.ids(2 * index, 11), *made.ids(99, 9)]
    file = read(value)
    assert [one.rows for one in answer_pairs.stated(file)] == [1.0]
    assert [one.rows for one in answer_pairs.stated(file, corrected=False)] == [0.0]


LLAVA = ("llava", "llava-1.5-7b-hf")
TEXT = " ".join(["There is a road with a car on it."] * 6)  # 54 words


def tokens(value: Any, model: str) -> list[float | None]:
    return [record.tokens for record in read(value).of(model, corrected=True)]


def cut(count: int, model: str = "egpt", key: str = "egpt") -> Any:
    """A whose second answer of a model has so many ids for 54 words."""
    rows = made.flat()
    rows[1] |= {f"{model}_token_ids": made.ids(2, count), key: TEXT}
    return rows


def test_sixty_are_added_where_the_words_explain_them() -> None:
    assert tokens(cut(7), "egpt") == [11, 67, 11, 11]
    (one,) = found(cut(7), "sliced_tokens")
    assert "60 tokens, the number that these scripts cut off, were added to each" in one.correction
    assert not found(cut(66), "sliced_tokens")  # control


def test_a_prompt_in_front_of_a_short_answer_is_no_known_cut() -> None:
    rows = cut(7)
    for row in rows:
        row["egpt_token_ids"] = [1, *corrected.ASSISTANT, *row["egpt_token_ids"]]
    assert tokens(rows, "egpt") == [11, None, 11, 11]
    (one,) = found(rows, "sliced_tokens")
    assert "one has 7 tokens" in one.message and "Nothing was added" in one.correction


@pytest.mark.parametrize("token", sorted(corrected.PLACEHOLDERS))
def test_placeholders_without_the_end_of_a_prompt_are_a_prompt(token: int) -> None:
    rows = made.flat()
    for row in rows:
        row["llava_token_ids"] = [1, *[token] * 576, *row["llava_token_ids"]]
    assert tokens(rows, "llava") == [22] * 4
    (one,) = found(rows, "prompt_counted")
    assert one.figures == {
        "prompt_ids": 577.0, "tokens_recorded": 599.0, "tokens_corrected": 22.0}  # fmt: skip
    assert 'no "ASSISTANT:" marks the start of the answer' in one.correction
    assert not found(rows, "degenerate")


@pytest.mark.parametrize(
    ("ids", "cut"),
    [
        ([], 0),
        ([5, 6, 2], 0),
        ([1, 5, *corrected.ASSISTANT, 9, 2], 6),
        ([*[32000] * 99, 5], 0),  # fewer than an image has
        ([*range(100, 300), *[32000] * 200], 0),  # an answer that ends so is degenerate
    ],
)
def test_where_a_prompt_ends(ids: list[int], cut: int) -> None:
    assert corrected.prompt_ids(ids) == cut


def test_a_limit_holds_for_what_is_left_of_a_prompted_answer() -> None:
    value = made.legacy()
    assert not found(value, "beyond_limit")
    value["config"]["max_new_tokens"] = 19
    (one,) = found(value, "beyond_limit")
    assert (
        "4 answers have more new tokens than the limit; one has 20, and the limit is 19"
        in one.message
    )
