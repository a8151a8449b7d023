"""Runs over contracts: few intakes or many, in this process or on Spark executors, each result published whole.

In: contracts with their intakes, and a snapshot. Out: results of contracts. Door: `run.BulkRun`.
"""
