"""The parts of the Compare page.

    input_changes  says that the chosen inputs are not those of the shown runs
    card_board     the verdict, the stage bars and the cards of all models
    overview       the verdict and the stage bars, which grow while models run
    verdict_strip  the verdict as HTML
    cards          one model's card: figures, answer, pictures, buttons
    card_figures   a card's figures as one row of HTML
    trust_badges   what affects how far the times of a run can be trusted
    setting_chips  the settings of the shown runs
    known_answer   the dataset's own answer, on demand
    draft_panel    the section "Draft": speculative decoding
    seen_timeline  the section "What each model saw": time line, clip, events of a window

Boundary: draws the views of jobs; computes no figure.
"""
