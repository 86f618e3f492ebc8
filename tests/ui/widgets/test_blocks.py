from streamlit.testing.v1 import AppTest


def page() -> None:
    from engine.report.blocks import Bullets, ChartBlock, Heading, Paragraph, Table
    from ui.widgets import blocks

    blocks.draw(
        [
            Heading(2, "A *head*"),
            Paragraph("Told **plainly**."),
            Bullets(("one", "two"), "Both:"),
            Table("c", ("model",), (("ev",),)),
            ChartBlock("words", lambda: "<b>drawn</b>"),
        ],
        "shown",
    )


def test_each_block_becomes_an_element_and_texts_stay_text() -> None:
    found = AppTest.from_function(page).run()
    assert not found.exception and found.subheader[0].value == r"A \*head\*"
    assert [one.value for one in found.text] == ["Told **plainly**.", "Both:\n• one\n• two"]
    markup = [one.proto.body for one in found.get("html")]
    assert "<caption>c</caption>" in markup[0] and markup[1] == "<b>drawn</b>"
