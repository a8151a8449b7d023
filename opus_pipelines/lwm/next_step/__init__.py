"""The network that tells the next step of a workflow, and the writing of sequences from what it tells.

In: features of the candidates for the next step. Out: a score of each, and sequences of them with their probabilities.
Doors: `network.fit_network` and `writing.sampled`.
"""
