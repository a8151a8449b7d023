"""From raw records to Task Implementations: settings of a source, column mapping, times, money, lifecycles, costs,
outcomes, privacy.

In: raw records of any log format. Out: implementations as Arrow batches, and rejects with reasons. Door:
`event_logs.assembler.Assembler`.
"""
