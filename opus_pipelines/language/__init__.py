"""Language: what words mean to the wings above: their stems, the statements of a sentence, and texts as vectors.

In: texts. Out: stems, statements and unit vectors. Doors: `grammar.reader.statements_of`, `embedding.encoder.Encoder`,
`embedding.index.VectorIndex` and `word_stems`.

Inside:
- `grammar`: from an English sentence to the statements in it;
- `embedding`: the sentence encoder, its cache, the FAISS index, and passages of long texts.
"""
