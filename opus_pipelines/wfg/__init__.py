"""The Workflow Graph: the sequences' dags and Algorithm 1 of LWM, which merges them."""
