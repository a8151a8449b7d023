"""Intakes: from the folder of a client to what it asks for: contract, documents, requirements, procedure and catalogue.

In: the intakes folder. Out: an `Intake` with its elements, its statements, goals and rules, and its Intention. Doors:
`intake.read_intake`, `requirements.intention.encode_intention` and `requirements.rules.read_rules`.

Inside:
- `documents`: the bytes of a document to its text, one reader for each group of formats;
- `visibility`: what a person sees of a document, and what is hidden;
- `requirements`: what a request demands: sentences, rules, goals and the encoded Intention;
- `procedures`: which part of a procedure a request is about, and which tasks its sentences ask for;
- `catalogues`: the tools that a client declares in files, and how its intakes are read with them;
- `decisions`: decisions of people on ranked workflows.

`stored` keeps intakes as they were read, and the vectors of their passages, in files that workers on any machine get.
"""
