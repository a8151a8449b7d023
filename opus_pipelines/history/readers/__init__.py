"""The readers of history, one module a format (`history.formats` lists them), and what several of them share."""
