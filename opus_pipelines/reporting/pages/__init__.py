"""HTML pages that need nothing else: of a contract, flows, programs, nights, and the errors of an evaluation.

Doors: `contract`, `errors`, `render.render`, `render.flow_page`, `programs.program_page` and `nights.nights_page`.
"""
