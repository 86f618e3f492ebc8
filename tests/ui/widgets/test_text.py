"""Numbers and words as they are shown."""

from engine.types import Sample
from ui.widgets import text


def test_escaped_text_holds_no_live_markdown() -> None:
    shown = text.escape("![x](http://y) $a$ :red[b]\n# c <b>")
    assert "\n" not in shown
    for mark in "!()$:<>":
        assert shown.count(mark) == shown.count(f"\\{mark}")
    assert "[" not in shown and "]" not in shown  # also escaped they would end a badge


def test_a_uuid_is_named_by_its_start_other_ids_whole() -> None:
    uuid = "357e6028-3d08-583e-9bdf-a85836735b46"
    assert text.name_of(Sample(uuid, "drive")) == "drive · 357e6028"
    assert text.name_of(Sample("clip_0001_long_name", "drive")) == "drive · clip_0001_long_name"
    assert text.name_of(Sample("alone", "")) == "alone"


def test_names_of_samples_are_told_apart() -> None:
    one, two, three = (f"357e6028-3d08-583e-9bdf-a8583673{n}" for n in ("5b46", "5b47", "0000"))
    samples = [Sample(one, "drive"), Sample(two, "drive"), Sample(three, "night")]
    names = text.names_of(samples)
    assert len(set(names.values())) == 3
    assert names[three] == "night · 357e6028" and two in names[two]
