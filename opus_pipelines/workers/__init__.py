"""Runs work in other processes: a sandbox for one item that may hang, a worker process, and Spark executors.

In: a setup and jobs. Out: answers, or `LostWorker` with the reason. Door: `workers.worker.Worker`.
"""
