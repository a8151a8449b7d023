"""A rebuild of the WKG: its steps, the records that they stage, and the tables, vectors and manifest that they write.

Each step finds in the lake what earlier steps left there, so it can run in a process of its own. In: the history
folder and the lake. Out: `wkg/<snapshot>`. Doors: `steps.read`, `steps.mine`, `steps.embed` and `steps.publish`.
"""
