"""The file formats of flows, one module for each. Doors: `registry.read_flow` and `registry.written`."""
