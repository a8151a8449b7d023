"""Reading of procedures: which part of a procedure a request is about, and which tasks its sentences ask for.

In: parts of a procedure, a request and the sentences that history followed. Out: `ParsedProcedure`. Doors:
`models.ProcedureIndex`, `reading.parse_procedure` and `list_reading.read_listed_steps`.
"""
