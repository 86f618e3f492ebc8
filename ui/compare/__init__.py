"""The parts of the Compare page.

    card_board      cards side by side, then the stage times of all models
    cards           one model's card: figures, answer, pictures, buttons
    card_figures    a card's figures as one row of HTML
    trust_badges    what affects how far the times of a run can be trusted
    setting_chips   the settings of the shown runs
    draft_panel     the section "Draft": speculative decoding

Boundary: draws the views of jobs; computes no figure.
"""
