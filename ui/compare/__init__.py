"""The parts of the Compare page.

    card_board    cards side by side, then the stage times of all models
    cards         one model's card: pictures, status, answer, figures, badges
    draft_panel   the section "Draft": speculative decoding
    seen_timeline the section "What each model saw": time line, clip, events of a window

Boundary: draws the views of jobs; computes no figure.
"""
