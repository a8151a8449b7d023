"""What a person sees of a document: colours, sizes, styles, characters without width, and what stands outside the body.

In: colours, style sheets, the drawing operations of a page, texts. Out: what is visible, and a note on what is not.
Doors: `unseen.Unseen`, `unseen.is_like`, `html.Styles`, `unseen.without_invisible`.
"""
