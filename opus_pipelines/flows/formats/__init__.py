"""The file formats of flows, one module for each. Doors: `python_ir.parse` and `python_ir.write`."""
