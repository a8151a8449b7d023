"""Stitching: one plan for an intake that demands the work of several processes, which no case of history did together.

In: the demanded tasks of an intake, and a snapshot. Out: the demanded processes, and the stitched plan. Doors:
`combined_processes.combined_processes` and `combined_processes.stitch`.
"""
