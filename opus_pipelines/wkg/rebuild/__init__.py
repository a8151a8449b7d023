"""A rebuild of the WKG: its stages, the records between them, and the tables, vectors and manifest that they write.

In: the history folder and the lake. Out: `wkg/<snapshot>`. Door: `stages`.
"""
