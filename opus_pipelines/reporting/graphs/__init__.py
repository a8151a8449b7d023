"""Pictures of graphs as SVG or Mermaid: layers, placement, edges, labels."""
