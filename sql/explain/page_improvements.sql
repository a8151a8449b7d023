-- What the search by Reward found for the workflows of current results, of every contract or of one, from both beginnings.
-- Of several searches of a workflow the one with the most scored workflows.
SELECT i.*, i.reward_after_usd - i.reward_before_usd AS earned_usd, w.intake_id
FROM programs_improvements AS i
JOIN workflows_optimized AS w USING (client, contract, workflow_id, result)
WHERE i.client = coalesce($client, i.client) AND i.contract = coalesce($contract, i.contract)
QUALIFY row_number() OVER (PARTITION BY i.client, i.contract, i.workflow_id, i.start ORDER BY i.calls DESC, i.improvement) = 1
ORDER BY i.client, i.contract, w.intake_id, i.rank, i.workflow_id, i.start DESC;
