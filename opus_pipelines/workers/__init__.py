"""Work in other processes: a sandbox for one item that may hang, a worker process for many, and Spark executors that
hold workers.

In: a setup and jobs. Out: answers, or `LostWorker` with the reason. Door: `workers.worker.Worker`.
"""
