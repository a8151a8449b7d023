"""Which raw keys of which sources are one task, and the ids that tasks keep for ever."""
