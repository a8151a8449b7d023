"""Operations: the record of each run of the jobs, and who is told of it: a dataset, alerts and metrics.

In: what a run did, as one `RunRecord`. Out: a row of `ops/runs`, messages by webhook and e-mail, and a file of metrics
for Prometheus. Door: `report.report`.
"""
