"""Widgets and helpers that several pages use.

    dataset_picker, sample_picker   choose a dataset, a sample or own files
    model_picker                    choose models and variants; the columns they become
    choices, run_settings           one of several names; the options of a run
    links                           what a URL asks for
    followed_runs                   jobs of the engine's queue that a visitor watches
    uploads, contact_sheets         a visitor's files; pictures as the browser shows them
    stored_runs                     stamps of run folders, for caches
    answers                         one answer in its card
    marked_text                     tokens of a draft and differences of answers as HTML
    notices, text, theme            messages, number formats, colours and CSS
    preparation                     background work of a fresh server

Boundary: draws what the engine computes; computes no figure.
"""
