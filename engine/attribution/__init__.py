"""What an answer rests on: which part of the input carries chosen words of an answer.

Parts of the input are removed, the input is encoded again, and the loss of log-probability of the
words is the score of a part (docs/attribution.md).

    explained.py    options, request and result; no torch

    Boundary: importing this package imports neither torch nor NumPy.
"""
