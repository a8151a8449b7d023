"""Reads plain text and Markdown as they are; a long text is read from the front."""

from opus_pipelines.intakes.documents.document import Document, DocumentText, cut
from opus_pipelines.intakes.documents.encoding import open_text, pieces
from opus_pipelines.intakes.documents.limits import MAX_CHARACTERS


def read(document: Document) -> DocumentText:
    """Returns the text, cut at MAX_CHARACTERS; the rest is only counted."""
    stream, note = open_text(document)
    notes = [note] if note else []
    with stream:
        parts = pieces(stream, MAX_CHARACTERS + 1)
        text = next(parts, "")
        beyond = sum(map(len, parts))
    kept, _ = cut(text, MAX_CHARACTERS)
    if beyond := len(text) - len(kept) + beyond:
        notes.append(f"the last {beyond:,} of {len(kept) + beyond:,} characters")
    return DocumentText(kept, tuple(notes))
