"""An invented enterprise: a catalogue, 300 generated and 100 handwritten requirements with their flows, in two parts.

In: nothing. Out: a `Catalogue` and examples, split by hash. Doors: `examples.examples`, `examples.world_catalogue`.
"""
