"""From the Workflow Graph to ranked workflows: ways, node costs, k best paths, constraints, ranking, baseline."""
