"""Runs work in other processes: a sandbox for one item that may hang, worker processes, and Spark executors.

In: a setup and jobs. Out: answers, or `LostWorker` with the reason. Doors: `core.workers.jobs` (what a setup and a job
are), `core.workers.worker.Worker`, `core.workers.pool.WorkerPool`, and
`core.workers.carried_jobs.carry`, whose executors need not share a folder with the run.
"""
