"""How a workflow is written for another program or a person, and read back: BPMN, Mermaid, JSON, YAML."""
