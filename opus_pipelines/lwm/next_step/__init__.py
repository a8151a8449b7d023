"""Networks that tell the next step of a workflow, and the writing of sequences from what they tell.

In: features of the candidates for the next step, or a request with its candidates as vectors. Out: a score of each, and
sequences of them with their probabilities. Doors: `network.train`, `transformer_network.PointerTransformer`,
`writing.sampled` and `writing.by_beam`.
"""
