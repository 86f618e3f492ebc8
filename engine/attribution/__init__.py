"""What an answer rests on: which part of the input carries chosen words of an answer.

Parts of the input are removed, the input is encoded again, and the loss of log-probability of the
words is the score of a part (docs/attribution.md).

    explained.py    options, request and result
    cells.py        the cells of the maps, and the box that is removed with each
    occlusion.py    removes boxes from pictures, and events from event pictures
    shown.py        the pictures that a run shows
    words.py        which tokens of an answer the words are
    forcing.py      encodes changed inputs and scores the words on each
    cost.py         encodings, prefills and seconds, before it runs
    explain.py      the whole explanation
    heatmap.py      an explanation as a picture
    kept.py         explanations that are kept with a run
    wording.py      an explanation in words

    Boundary: importing this package does not import torch; importing `explain` does.
"""
