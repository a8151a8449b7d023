"""HTML pages that need nothing else: of a contract, flows, programs and nights.

Doors: `contract`, `render.render`, `render.flow_page`, `programs.program_page` and `nights.nights_page`.
"""
