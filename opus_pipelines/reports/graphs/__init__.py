"""Pictures of graphs for a person: laid out left to right, written as SVG or Mermaid. Where a graph comes from is not known here."""
