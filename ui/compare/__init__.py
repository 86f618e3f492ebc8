"""The parts of the Compare page.

    shown_inputs    settings of the shown runs, and what has changed since them
    card_board      verdict, stage bars, cards and replay of all models; what is spoken
    cards           one model's card: figures, answer, pictures, buttons
    card_figures    a card's figures as one row of HTML
    trust_badges    what affects how far the times of a run can be trusted
    agreement_view  the known answer, and whether the models' answers agree
    recording_view  events over time, and "What each model saw": time line, clip, events of a window
    explain_panel, explanation_view   what an answer rests on
    draft_panel     the section "Draft": speculative decoding
    history         what this visit has asked; saving a comparison as a run

Boundary: draws the views of jobs; computes no figure.
"""
