"""HTML pages that need nothing else: a contract and the errors of an evaluation here, flows, programs and nights below.

Doors: `contract`, `errors`, `render`, `flows.page`, `programs.searches` and `nights.page`.
"""
