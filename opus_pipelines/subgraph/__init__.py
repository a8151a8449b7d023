"""From routed tasks to the subgraphs that sequences are written for: neighbourhoods, and the SWKG of each, LWM (7), (8)."""
