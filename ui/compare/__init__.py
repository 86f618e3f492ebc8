"""The parts of the Compare page.

    input_changes  says that the chosen inputs are not those of the shown runs
    card_board     the verdict, the stage bars and the cards of all models
    verdict_strip  the verdict as HTML
    cards          one model's card: pictures, status, answer, figures, badges
    draft_panel    the section "Draft": speculative decoding

Boundary: draws the views of jobs; computes no figure.
"""
