"""Fine-tuning of the sentence encoder: which tasks the words of a request ask for.

In: requests of cases with the tasks that they did, and the vectors of the tasks. Out: a `TaskReader`, whose weights are
the upper layers of the encoder and an attention of each task over the tokens. Doors: `training.fit` and
`task_reader.TaskReader.log_odds`.
"""
