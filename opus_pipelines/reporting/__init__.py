"""What people read: ranked workflows, explanations, status, SQL views, pictures and HTML pages.

In: a published lake. Out: rows, text, SVG and HTML. Doors: `best.ranked`, `explain.explanation`, `views.connect`.
"""
