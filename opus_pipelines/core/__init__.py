"""What every package uses: errors, ids, algorithm versions, settings, dataset schemas, progress and text for people.

In: nothing. Out: small functions and types without state. Door: `core.settings.load` for settings, `core.schemas`
for datasets.
"""
