"""From the bytes of a document to its text, LWM (3): one module for each format. Door: `read.preprocess`."""
