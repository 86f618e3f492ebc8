"""What the sentences say is what was done, in words that fit their numbers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from engine.published.audit import RULES, audit
from engine.published.audit.findings import SEARCHES, share
from engine.published.read import answer_pairs, file_summary
from engine.quoting import count
from tests.published.audit.test_published import PLANTED, SLICED, TWICE
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read


def test_one_thing_and_several() -> None:
    assert (count(1, "sample"), count(2220, "sample")) == ("1 sample", "2,220 samples")
    assert share(1, 1, "answer") == "the only answer" and share(5, 5, "answer") == "all 5 answers"
    assert share(1, 5, "answer") == "1 of 5 answers"


def test_a_sentence_of_records_has_their_numbers_and_verbs() -> None:
    """The first wrong record gives the values."""
    value = made.flat()
    value[1]["egpt"] = "Car " * 8
    value[1]["egpt_token_ids"] = [5] * 8
    (finding,) = found(value, "degenerate")
    start = "EventGPT (egpt): 1 of 4 answers repeats one token ('Car Car Car Car Car Car ')"
    assert finding.message == f"{start} and is not usable."
    assert (finding.figures, finding.paths, finding.model) == ({}, ("$[1]",), "egpt")
    value[3] |= {"egpt": "Truck " * 8, "egpt_token_ids": [5] * 8}
    (both,) = found(value, "degenerate")
    assert "2 of 4 answers repeat one token ('Car" in both.message and "are not" in both.message


def test_every_check_has_a_sentence_and_every_sentence_a_check() -> None:
    assert {name for rule in RULES for name in rule.checks} == set(SEARCHES)


@pytest.mark.parametrize("rule", PLANTED)
def test_sentences_fit_their_numbers_and_have_no_python_words(rule: str) -> None:
    """Of one planted value, and of the file cut down to a single row."""
    for value in (PLANTED[rule][0], made.single(PLANTED[rule][0])):
        for one in audit(read(value)):
            text = f"{one.message} {one.correction}"
            assert not re.search(r"(?<![\d.,])1 (?!of |x |or )\w+s\b(?! is)", text), text
            assert not re.search(r"\b(None|True|False|NoneType|dict|float|int|nan)\b", text), text


def test_the_sliced_sentence_says_what_acceptance_does() -> None:
    value = json.loads(json.dumps(SLICED))
    value[0]["egpt_token_ids"][3] = value[0]["llava_token_ids"][3]
    file = read(value)
    (one,) = [finding for finding in audit(file) if finding.rule == "sliced_tokens"]
    figures = file_summary.acceptance_dict(file)
    assert figures["pairs"] == 4 and figures["without_sliced"]["pairs"] == 3  # they stay
    assert "are compared as recorded" in one.correction
    every, whole = figures["pos_rate"], figures["without_sliced"]["pos_rate"]
    assert f"{every:.1%} of the ids match by position, {whole:.1%} in the 3 pairs" in one.correction
    assert f"{every:.1%}" != f"{whole:.1%}"


def test_an_answer_without_any_id_was_not_sliced() -> None:
    value = made.flat()
    value[1]["egpt_token_ids"] = []
    assert not found(value, "sliced_tokens") and found(SLICED, "sliced_tokens")


def test_pairs_take_the_first_as_the_sentence_says() -> None:
    value = json.loads(json.dumps(TWICE))
    value[-1]["egpt_token_ids"] = value[-1]["llava_token_ids"] = [5, 6, 7]
    assert all("Pairs of answers use the first" in one.message
               for one in found(value, "duplicates"))  # fmt: skip
    file, clean = read(value), read(made.flat())
    pairs = answer_pairs.pairs_of(file, "egpt", "llava")
    assert pairs == answer_pairs.pairs_of(clean, "egpt", "llava") and len(pairs) == 4


def bos(count: int = 20, odd: int = 0) -> Any:
    value = made.five(count)
    for row in value["results"][:odd]:
        row["acceptance"]["matched_tokens"] = 1
    return value


def test_a_duplicated_sample_does_not_hide_the_begin_of_text_id() -> None:
    value = bos()
    value["results"].append(json.loads(json.dumps(value["results"][0])))
    value["results"][-1]["acceptance"]["matched_tokens"] = 2
    (one,) = found(value, "bos_matched")
    assert "id of every sample. Without it 21 match" in one.message


def test_a_few_exceptions_are_told_and_many_are_none() -> None:
    told = "2.0% of the 200 positions that the rows compare, 2.5% of the 160"
    assert told in found(bos(4), "bos_matched")[0].message
    (one,) = found(bos(odd=2), "bos_matched")
    assert "id of 18 of 20 samples. Without it 20 match" in one.message
    assert one.figures["samples_with_bos"] == 18
    assert not found(bos(odd=3), "bos_matched") and not found(bos(odd=20), "bos_matched")


def test_a_cost_ratio_per_token_is_not_called_one_of_whole_answers() -> None:
    value = made.pairs("F1")
    assert "per token it is 1.250" in found(value, "cost_ratio")[0].message
    value["results"]["avg_c_ratio"] = (1 / 20) / (1.2 / 30)
    for row in value["samples"]:
        row["c_ratio"] = value["results"]["avg_c_ratio"]
    assert not found(value, "cost_ratio")


def test_a_speed_up_that_is_neither_is_not_called_one_of_both_models() -> None:
    value = made.five()
    assert "divides the time of both models" in found(value, "speedup")[0].message
    for row in value["results"]:
        row["parallel"]["parallel_speedup"] = 9.0
    assert "does not follow from the rows" in found(value, "speedup")[0].message


def test_ways_to_draft_are_one_finding() -> None:
    value = made.wallclock()
    (alone,) = found(value, "lossless")
    assert "Speculation changed 1 of 4 answers of" in alone.message and alone.model == "L1"
    value["sd_per_sample"] |= {"L2": value["sd_per_sample"]["L1"], "L3": []}
    (one,) = found(value, "lossless")
    assert "2 of 8 answers, in 2 of 2 ways to draft" in one.message
    for way in ("L1", "L2"):
        value["sd_per_sample"][way][0]["text"] = "Answer 0"
    assert not found(value, "lossless")
