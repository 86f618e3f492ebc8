"""The parts of the Compare page.

    shown_inputs    settings of the shown runs, and what has changed since them
    card_board      verdict, whether the answers agree, cards, stage bars; what is spoken
    run_bars        stage times of single runs as bars, also while they run; a table
    blind_vote      answers without names until the visitor votes
    cards           one model's card: total, tokens, trust, answer, menu
    compare_tabs    what is folded: times, agreement, pictures, why, draft
    trust_badges    what affects how far the times of a run can be trusted
    agreement_view  whether the models' answers agree, and the known answer
    recording_view  events over time, and "What each model saw": time line, clip, events of a window
    explain_panel, explanation_view   what an answer rests on
    draft_panel     speculative decoding
    history         what this visit has asked; saving a comparison as a run

Boundary: draws the views of jobs; computes no figure.
"""
