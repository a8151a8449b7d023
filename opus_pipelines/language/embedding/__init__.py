"""Text as unit vectors: the sentence encoder, its cache, the FAISS index, and passages of long texts.

In: texts. Out: unit vectors. Doors: `encoder.Encoder` and `index.VectorIndex`.
"""
