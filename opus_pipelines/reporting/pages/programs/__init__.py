"""The page of workflow programs: searches by reward, with the program before and after and learning curves.

In: the views `programs_searches` and `programs_curves`. Out: HTML that needs nothing else. Doors:
`searches.program_page`, `searches.render_programs`.
"""
