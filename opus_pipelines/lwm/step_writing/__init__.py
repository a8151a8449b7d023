"""Writes the steps of a workflow as texts where history has no fixed catalogue of tasks.

In: the request, the texts listed beside it, and the cases of an industry whose steps are texts of their own. Out: steps
as texts in order, each with its origin and probability. The doors are `model.train_step_writer` and
`model.StepWriter.written`.
"""
