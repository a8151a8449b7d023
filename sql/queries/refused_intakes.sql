-- Intakes without workflows, and why: refused (ask the client) or failed.
-- opus query refused_intakes
SELECT client, contract, folder AS intake, status, reason
FROM generation_intakes
WHERE status <> 'generated'
ORDER BY client, contract, folder;
