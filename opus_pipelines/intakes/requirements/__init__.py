"""Requirements: what a request demands, read from its documents: sentences, rules, goals and the encoded Intention.

In: elements of an intake. Out: statements, rules, goals and `Intention`. Doors: `rules.read_rules` and
`intention.encode_intention`.
"""
