"""Runs work in other processes: a sandbox for one item that may hang, worker processes, and Spark executors.

In: a setup and jobs. Out: answers, or `LostWorker` with the reason. Doors: `pool` (what a setup and a job
are), `pool.Worker`, `pool.WorkerPool`, and `carried_jobs.carry`, whose executors need not share a folder with the run.
"""
