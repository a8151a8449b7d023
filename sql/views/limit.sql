-- Leaves of the files of results those whose path has every one of $1, the folders of a client and a contract.
SET VARIABLE files = (
    SELECT map_from_entries(list((
        entry.key,
        list_filter(entry.value, lambda file: NOT contains(file, '/client_key=') OR list_bool_and([contains(file, key) FOR key IN $1]))
    )))
    FROM (SELECT unnest(map_entries(getvariable('files'))) AS entry)
);
