"""The request stage: contract and intake folders, their settings, and the documents in them as text.

In: the intakes folder. Out: `intakes.intake.Intake` with its elements. Door: `intakes.intake.read_intake`;
`intakes.documents` holds the document readers.
"""
