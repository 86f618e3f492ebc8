"""The colours of columns: one order of them everywhere."""

from engine import palette


def test_the_first_of_a_family_has_its_colour_and_later_ones_have_others() -> None:
    families = ["llava", "eventgpt", "llava", "eventgpt", "llava"]
    assert palette.tones(families) == ["llava", "eventgpt", "column-1", "column-2", "column-3"]
    six = palette.tones(["transformers"] * 6)
    assert len({palette.family_colour(tone) for tone in six}) == 6
    assert palette.NEUTRAL not in map(palette.family_colour, six)
    named = palette.toned({"a": "llava", "b": "llava"})
    assert named == {"a": "llava", "b": "column-1"}
