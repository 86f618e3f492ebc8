"""One explanation: the words, chance, the map with its legend, the strongest parts, the time line.

The words and the answer are a model's: they are shown as plain text.
"""

from html import escape

import streamlit as st

from engine.attribution import wording
from engine.attribution.explained import Explanation, nats_text
from engine.attribution.wording import NOT_SAID
from engine.report.blocks import Paragraph
from ui.widgets import blocks, contact_sheets, notices

TOGETHER = "A part counts together with its neighbours, so the order is not that of single losses."
SAME_MAP = "A part is removed from all pictures at once, so all show the same map."
PROVES = "What this does not prove"


def draw(found: Explanation, picture: bytes, subject: str, key: str) -> None:
    """The whole explanation; `picture`: the map as a PNG, b"" if there is none."""
    from engine.report import explanation_part  # reports import much

    st.container(key=f"explained_words_{key}").text(found.words)
    if not found.said:
        notices.notice(NOT_SAID, f"explained_unsaid_{key}")
    # Read before the map: whether there is anything to see.
    show = notices.notice if wording.no_place(found) else notices.small
    show(found.chance.sentence, f"explained_chance_{key}")
    several = len(found.moments) > 1
    left, right = (st.container(), st.container()) if several else st.columns([3, 2], gap="medium")
    with left:
        if picture:
            address = contact_sheets.address(picture, "png")
            st.image(address, width="stretch", alt=wording.alt(found, subject))
            st.html(legend(found))
        else:
            st.caption("The pictures are not here, so there is no map.")
    with right:
        places, times = st.columns(2, gap="medium") if found.moments else (st.container(), None)
        losses = [cell.nats for cell in found.strongest[: wording.SHOWN]]
        more = [TOGETHER] if losses != sorted(losses, reverse=True) else []
        more += [SAME_MAP] if found.moments else []
        with places:
            text = " ".join((wording.plain(found), *more))
            parts = (explanation_part.places(found), Paragraph(text))
            blocks.draw(parts, f"explained_parts_{key}")
        if times is not None:
            noun = "Frames" if found.moments[0].label.startswith("frame") else "Event images"
            with times:
                st.markdown(f"**{noun}, one by one**")
                blocks.draw(explanation_part.moments(found), f"explained_moments_{key}")
    notes = [note for note in found.notes if note != NOT_SAID]
    with st.expander(PROVES, key=f"explained_limits_{key}"):
        notices.small("\n".join(f"• {line}" for line in wording.LIMITS), f"explained_limits_{key}")
        notices.small(wording.UNIT, f"explained_unit_{key}")
        notices.small("\n".join((wording.how(found), *notes)), f"explained_how_{key}")


def legend(found: Explanation) -> str:
    pale = " heat-pale" if wording.no_place(found) else ""
    low, high = escape(nats_text(-found.most)), escape(nats_text(found.most))
    return (
        f'<div class="heat-legend{pale}"><span>{low}</span><span class="heat-bar" role="img" '
        f'aria-label="Colours of the map, from {low} over 0 to {high}"></span>'
        f"<span>{high}: the words rest on it</span></div>"
    )
