"""Flows for people: pictures as SVG, two flows side by side with what changed, and a page that needs nothing else.

In: flows, and what was retrieved for them. Out: SVG and HTML in which every text is escaped. Doors:
`picture.flow_svg`, `picture.difference_svg` and `page.flow_page`.
"""
