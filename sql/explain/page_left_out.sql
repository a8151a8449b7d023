-- What of a contract's documents was not read, and why; the contract's own documents once, without an intake.
SELECT DISTINCT CASE WHEN e.role = 'contract' THEN NULL ELSE folder END AS intake, e.role, e.name, e.left_out
FROM (SELECT folder, unnest(elements) AS e FROM generation_intakes WHERE client = $client AND contract = $contract)
WHERE e.left_out IS NOT NULL
ORDER BY intake NULLS FIRST, e.role, e.name, e.left_out
