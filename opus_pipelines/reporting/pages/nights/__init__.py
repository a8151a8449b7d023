"""Nights: a page that shows the last rebuild beside up to thirty before it, and the nights that failed.

In: the view `ops_runs`. Out: HTML that needs nothing else. Door: `page.nights_page`, `page.render_nights`.
"""
