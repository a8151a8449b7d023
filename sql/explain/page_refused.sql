-- The intakes of a contract that got no workflows, and why.
SELECT folder AS intake, status, reason
FROM generation_intakes
WHERE client = $client AND contract = $contract AND status <> 'generated'
ORDER BY status, folder
