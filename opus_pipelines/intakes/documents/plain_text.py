"""Plain text and Markdown, as they stand; a long one from the front."""

from opus_pipelines.intakes.documents.document import Document, DocumentText, cut
from opus_pipelines.intakes.documents.encoding import open_text, pieces
from opus_pipelines.intakes.documents.limits import MAX_CHARACTERS


def read(document: Document) -> DocumentText:
    """The text, cut at MAX_CHARACTERS; the rest is only counted."""
    stream, note = open_text(document)
    said = [note] if note else []
    with stream:
        found = pieces(stream, MAX_CHARACTERS + 1)
        text = next(found, "")
        beyond = sum(map(len, found))
    kept, _ = cut(text, MAX_CHARACTERS)
    if beyond := len(text) - len(kept) + beyond:
        said.append(f"the last {beyond:,} of {len(kept) + beyond:,} characters")
    return DocumentText(kept, tuple(said))
