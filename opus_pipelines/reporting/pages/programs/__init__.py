"""Pages of workflow programs: searches by reward, and workflows of contracts before and after, with curves and money.

In: the views `programs_searches`, `programs_curves` and `programs_improvements`. Out: HTML that needs nothing else.
Doors: `searches.program_page`, `searches.render_programs`, `improvements.improvement_page`,
`improvements.render_improvements`.
"""
