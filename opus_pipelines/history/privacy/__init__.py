"""Finds personal data in texts by format and check digit: telephone, identity, tax, passport and account numbers.

In: a text of any language. Out: where its private parts stand. Nothing is learnt and nothing is fetched. Doors:
`plain_text.PlainText`, `identity_numbers.identities`, `telephone_numbers.national_numbers`, `persons.persons`.
"""
