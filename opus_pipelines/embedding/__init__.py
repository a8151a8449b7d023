"""Text as unit vectors: the sentence encoder, its cache by content, the FAISS index, and how parts of a text are put together."""
