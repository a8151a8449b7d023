"""Fine-tuning: which tasks the words of a request ask for, and which tasks an Intention leads to.

In: requests of cases with the tasks that they did, and the vectors of the tasks. Out: a `TaskReader`, whose weights are
the upper layers of the sentence encoder and an attention of each task over the tokens; and an `IntentionEncoder`.
Doors: `task_reader.fit_reader`, `task_reader.TaskReader.log_odds` and `encoder_training.fit_encoder`.
"""
