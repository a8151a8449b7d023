"""Pictures of graphs as SVG: layers, placement, edges, labels."""
