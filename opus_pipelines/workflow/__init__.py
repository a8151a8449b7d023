"""The Workflow W = (G, Φ) of EVAL A1: its nodes and edges, what makes it well formed, and what a client demands of it."""
