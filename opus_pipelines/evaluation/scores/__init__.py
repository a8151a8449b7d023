"""How the four scores of EVAL A3 are measured: one module a score, each a documented rule of this project's own, bounded by [0, 1].

Which rule is in force, or which number stands in its place, is for the settings to say.
"""
