"""Training: models learnt from the cases of a snapshot, judged on held-out cases before they may serve.

In: the current snapshot and the requests of its cases. Out: a model in the lake with a card of its figures. Door:
`train.train`.
"""
