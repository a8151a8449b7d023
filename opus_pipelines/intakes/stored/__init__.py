"""Keeps intakes as they were read, and the vectors of their passages, in files that workers on any machine get.

In: what reading a chunk of a contract's intakes found, and encoded texts. Out: files of Arrow, and what they hold.
Doors: `files.write_intakes`, `files.read_intakes`, and `passage_vectors.StoredVectors`.
"""
