"""The pointer model: which task comes next for a request, learnt from the cases of history.

In: the request in clauses, the tasks and edges of one industry of the Work Knowledge Graph, and the industry's cases
with their texts. Out: task sequences with their probabilities. The doors are `learning.train_pointer` and
`model.PointerModel.sequences`.
"""
