"""What people read: ranked workflows, explanations, status, SQL views, pictures and HTML pages.

In: a published lake. Out: rows, text, SVG and HTML. Doors: `best.ranked`, `explain.explanation`, `views.connect`.

Inside:
- `graphs`: pictures of graphs as SVG: layers, placement, edges, labels;
- `pages`: HTML pages of contracts, flows, programs and nights.
"""
