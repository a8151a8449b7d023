"""The grammar of procedures: from a sentence to what it states (`intention.stated`). English.

It reads clause structure, modality, negation and words of time; it knows no phrases of any one client.
"""
