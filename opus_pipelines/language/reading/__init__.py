"""Reads procedures and requests in several languages: which candidate tasks their sentences ask for.

In: texts, candidate tasks, and a function that embeds texts. Out: a record for each sentence, and the tasks of the
request in their order. Door: `reader.read`.
"""
