"""What every wing uses: errors, ids, algorithm versions, settings, dataset schemas, progress and text for people.

In: nothing. Out: small functions and types without state. Doors: `settings.load` for settings, and `schemas` for
datasets.

Inside:
- `tables`: the columns of every dataset, one module for each part of the lake;
- `workers`: work in other processes: a sandbox for one item that may hang, worker processes, and Spark executors.
"""
