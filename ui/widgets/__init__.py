"""Widgets and helpers that several pages use.

    dataset_picker, sample_picker   choose a dataset, a sample or own files, and models
    run_settings                    decoding, frames, cache, mode, pixels
    links                           what a URL asks for
    followed_job, followed_runs     jobs of the engine's queue that a visitor watches
    uploads, contact_sheets         a visitor's files; pictures as the browser shows them
    token_marks                     accepted and rejected tokens as HTML
    notices, text, theme            messages, number formats, colours and CSS
    preparation                     background work of a fresh server

Boundary: draws what the engine computes; computes no figure.
"""
