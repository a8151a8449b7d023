"""The catalogue of a contract: the tools that a client declares in files, and how its intakes are read with them.

In: files in a contract's folder (CSV, JSON Lines, YAML, OpenAPI, MCP tool lists). Out:
`intakes.catalogues.entries.Catalogue`, and the steps that a procedure or a request asks for of it. Door:
`intakes.catalogues.files.read_catalogue`.
"""
