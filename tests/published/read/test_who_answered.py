"""Who answered, by labels that are foreign, exchanged, or right for some records only."""

from typing import Any

from engine.published.claims.headlines import headlines
from engine.published.read.who_answered import speaks_of_eventgpt
from tests.published.read import synthetic as made
from tests.published.read.synthetic import found, read


def named(mine: str, other: str) -> Any:
    value = made.five()
    for row in value["results"]:
        row["eventgpt"]["model"], row["videollava"]["model"] = mine, other
    return value


def exchanged(labels: bool = False) -> Any:
    """The two answers of each row change places, and their labels with them or not."""
    value = made.five()
    for row in value["results"]:
        row["eventgpt"], row["videollava"] = row["videollava"], row["eventgpt"]
        if not labels:
            row["eventgpt"]["model"], row["videollava"]["model"] = "EventGPT", "Video-LLaVA"
    return value


def test_a_claim_about_eventgpt_rests_on_no_foreign_model() -> None:
    for value in (named("Qwen2-VL-7B", "Video-LLaVA"), named("EventGPT", "InternVL"), exchanged()):
        assert not speaks_of_eventgpt(read(value))
        for headline in headlines([read(value)]):
            assert not headline.evidence
            assert next(iter(headline.without)).startswith("a model other than EventGPT")
    assert headlines([read(made.five())])[0].evidence  # control


def test_exchanged_answers_under_kept_labels_are_found() -> None:
    told = found(exchanged(), "label")
    assert [one.model for one in told] == ["eventgpt", "videollava"]
    assert "(with 2,048 counted twice) is 8 images of 257 tokens" in told[0].message
    assert "a context of 637 fits EventGPT's event images" in told[1].message
    file = read(exchanged(labels=True))  # control: the labels went with the answers
    assert [one.agrees for one in file.identities.values()] == [True, True]
    assert not found(exchanged(labels=True), "label") and not found(made.five(), "label")


def test_one_image_is_found_by_the_record() -> None:
    value = made.five(6)
    for row in value["results"][:2]:
        row["eventgpt"]["prefill_length"] = 641
    (one,) = found(value, "one_image")
    assert "EventGPT: 4 of 6 answers use one event image" in one.message
    assert one.paths[0] == "results[2].eventgpt"
    assert "(4 of 6 records)" in read(value).identities["eventgpt"].evidence
    assert not found(with_context(641, "eventgpt"), "one_image")


def with_context(tokens: int, key: str = "videollava") -> Any:
    value = made.five()
    for row in value["results"]:
        row[key]["prefill_length"] = tokens
    return value


def test_a_context_that_the_named_model_could_have_is_no_wrong_label() -> None:
    """637 may be EventGPT's, or one image of LLaVA-1.5 and a question of 61."""
    assert read(with_context(637)).identities["videollava"].agrees is None
    for tokens in (597, 1173):
        identity = read(with_context(tokens)).identities["videollava"]
        assert identity.family is None and identity.agrees is None
        assert f"a context of {tokens:,} is undetermined" in identity.evidence
        assert not found(with_context(tokens), "label")
    assert identity.evidence == (
        "a context of 1,173 is undetermined: 4 images of 257 tokens and 145 of text, as "
        "Video-LLaVA, or 2 images of 576 tokens and 21 of text, as LLaVA-1.5"
    )


def test_a_context_that_the_named_model_cannot_have_is_a_wrong_label() -> None:
    (one,) = found(with_context(4643), "label")
    assert "8 images of 576 tokens and 35 of text, as LLaVA-1.5" in one.message
    (one,) = found(with_context(2076, "eventgpt"), "label")[:1]
    assert one.model == "eventgpt"
