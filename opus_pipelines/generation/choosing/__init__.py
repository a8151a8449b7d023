"""From the Workflow Graph to the ranked workflows: proposals, plans, alternatives, scores, how sure all is."""
