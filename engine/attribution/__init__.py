"""What an answer rests on: which part of the input carries chosen words of an answer.

Parts of the input are removed, the input is encoded again, and the loss of log-probability of the
words is the score of a part (docs/attribution.md).

    explained.py    options, request, the cells of the maps with their cost, and result
    occlusion.py    the pictures of a run, without boxes or events
    words.py        which tokens of an answer the words are
    chance.py       whether any part matters more than chance
    explain.py      scores the words on each changed input
    heatmap.py      an explanation as a picture
    kept.py         explanations that are kept with a run
    wording.py      an explanation in words

Only `explain` imports torch.
"""
