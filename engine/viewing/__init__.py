"""A sample for people to look at: its time line, its clip, its events of any moment.

    event_times   counts of events, spans of slices, one window
    seen_times    when each picture that a model receives is from
    seen_markup   that time line as HTML and CSS
    playing       a clip that a browser plays
    picture_sheet several pictures on one sheet

Boundary: nothing here decides what a model receives, so that a change leaves certificates valid.
"""
