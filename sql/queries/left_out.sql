-- What of the documents was not read, and why: nothing is left out in silence. A contract's own documents are named once.
-- opus query left_out
SELECT DISTINCT
    client, contract, CASE WHEN e.role = 'contract' THEN NULL ELSE folder END AS intake, e.role, e.name, e.media_type, e.bytes,
    e.text IS NOT NULL AS partly_read, e.left_out
FROM (SELECT client, contract, folder, unnest(elements) AS e FROM generation_intakes)
WHERE e.left_out IS NOT NULL
ORDER BY client, contract, intake, e.role, e.name;
