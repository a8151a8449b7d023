"""An invented enterprise: a catalogue of tables, triggers and actions. No customer's data is in it.

In: nothing. Out: a `Catalogue`. Door: `examples.world_catalogue`.
"""
