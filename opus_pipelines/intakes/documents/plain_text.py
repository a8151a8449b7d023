"""Reads plain text and Markdown, without its hidden text; a long text is read from the front."""

from pathlib import PurePosixPath

from opus_pipelines.intakes.documents.document import Document, DocumentText, cut
from opus_pipelines.intakes.documents.encoding import open_text, pieces
from opus_pipelines.intakes.documents.limits import MAX_CHARACTERS
from opus_pipelines.intakes.documents.markdown import shown
from opus_pipelines.intakes.visibility.unseen import Unseen


def read(document: Document) -> DocumentText:
    """Returns the text, cut at MAX_CHARACTERS; the rest is only counted."""
    stream, note = open_text(document)
    notes = [note] if note else []
    with stream:
        parts = pieces(stream, MAX_CHARACTERS + 1)
        text = next(parts, "")
        beyond = sum(map(len, parts))
    kept, _ = cut(text, MAX_CHARACTERS)
    unseen = Unseen(document.asides)
    visible, unread = shown(kept, unseen, PurePosixPath(document.name.strip()).suffix.lower())
    notes += [*unread, *unseen.notes]
    if beyond := len(text) - len(kept) + beyond:
        notes.append(f"the last {beyond:,} of {len(kept) + beyond:,} characters")
    return DocumentText(visible, tuple(notes))
