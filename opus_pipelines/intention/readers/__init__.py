"""From a document's bytes to its text, LWM (3): one module a format, imported when a document of that kind is met.

`preprocess` is the way in; text is data throughout: nothing in a document is followed, run or fetched.
"""
