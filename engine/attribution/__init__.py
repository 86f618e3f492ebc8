"""What an answer rests on: which part of the input carries chosen words of an answer.  Parts of the
input are removed, the input is encoded again, and the loss of log-probability of the words is the
score of a part (docs/attribution.md).  Only `explain` imports torch."""
