"""From the bytes of a document to its text, LWM (3): a reader for each group of formats. Door: `formats.preprocess`."""
