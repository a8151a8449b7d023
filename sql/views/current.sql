-- What is current: every pointer is read here, once, into a variable, and the views below stay with what it named.
-- Run this file again to see what was published since. A pointer that is damaged is named in damaged_results, and costs its contract alone.

SET VARIABLE pointer = (
    SELECT TRY_CAST(decode(content, 'replace') AS JSON) FROM read_blob(getvariable('lake') || '/wkg/current.json')
);
SET VARIABLE snapshot = (
    SELECT name FROM (SELECT getvariable('pointer')::JSON ->> 'snapshot' AS name) WHERE regexp_full_match(name, '[A-Za-z0-9_-]+')
);
SET VARIABLE manifest = (
    SELECT TRY_CAST(decode(content, 'replace') AS JSON)
    FROM read_blob(getvariable('lake') || '/wkg/' || coalesce(getvariable('snapshot'), '-') || '/manifest.json')
);
SET VARIABLE pointers = (
    SELECT coalesce(list({'file': parse_filename(filename), 'pointer': TRY_CAST(decode(content, 'replace') AS JSON)} ORDER BY filename), [])
    FROM read_blob(getvariable('lake') || '/workflows/current/*.json')
    WHERE parse_filename(filename) <> '_files.json'
);
-- What a program found out about the files of results before it ran this file. `pointer` is the name of a contract's pointer.
SET VARIABLE known_damage = coalesce(
    getvariable('known_damage')::STRUCT(pointer VARCHAR, client VARCHAR, contract VARCHAR, file VARCHAR, reason VARCHAR)[], []
);

CREATE OR REPLACE VIEW current_snapshot AS
SELECT
    getvariable('snapshot')::VARCHAR AS snapshot,
    pointer ->> 'before' AS before,
    TRY_CAST(pointer ->> 'published_at' AS TIMESTAMPTZ) AS published_at,
    getvariable('manifest')::JSON AS manifest
FROM (SELECT getvariable('pointer')::JSON AS pointer)
WHERE getvariable('snapshot') IS NOT NULL;

CREATE OR REPLACE VIEW current_results AS
SELECT
    pointer ->> 'client' AS client,
    pointer ->> 'contract' AS contract,
    pointer ->> 'result' AS result,
    pointer ->> 'before' AS before,
    pointer ->> 'snapshot' AS snapshot,
    pointer ->> 'model_version' AS model_version,
    TRY_CAST(pointer ->> 'published_at' AS TIMESTAMPTZ) AS published_at
FROM (SELECT unnest(getvariable('pointers'), max_depth := 2))
WHERE pointer ->> 'client' IS NOT NULL AND pointer ->> 'contract' IS NOT NULL AND pointer ->> 'result' IS NOT NULL
    AND file NOT IN (SELECT pointer FROM (SELECT unnest(getvariable('known_damage'), max_depth := 2)));

-- Contracts whose pointer or result is damaged: every other view leaves them out.
CREATE OR REPLACE VIEW damaged_results AS
SELECT client, contract, file, reason FROM (SELECT unnest(getvariable('known_damage'), max_depth := 2))
UNION ALL
SELECT
    url_decode(replace(split_part(file, '__', 1), '_', '%')),
    url_decode(replace(regexp_replace(split_part(file, '__', 2), '[.]json$', ''), '_', '%')),
    'workflows/current/' || file,
    'it is no pointer to a result'
FROM (SELECT unnest(getvariable('pointers'), max_depth := 2))
WHERE (pointer ->> 'client' IS NULL OR pointer ->> 'contract' IS NULL OR pointer ->> 'result' IS NULL)
    AND file NOT IN (SELECT pointer FROM (SELECT unnest(getvariable('known_damage'), max_depth := 2)));

-- Whether a result has other columns than this version declares. Only then are columns matched over the union of all files: DuckDB opens
-- every file for that, and otherwise those alone that a condition on client or contract leaves.
SET VARIABLE has_other_columns = (
    SELECT coalesce(bool_or((pointer ->> 'columns') IS DISTINCT FROM getvariable('columns_of_results')), false)
    FROM (SELECT unnest(getvariable('pointers'), max_depth := 2))
);

SET VARIABLE history_sources = (SELECT coalesce(list(file), []) FROM glob(getvariable('lake') || '/history/sources/*.parquet'));

-- The files of each view. Values in paths are slugs: _20 stands for the byte 20.
SET VARIABLE files = (
    WITH
        damaged_files AS (
            SELECT getvariable('lake') || '/' || file FROM (SELECT unnest(getvariable('known_damage'), max_depth := 2))
        ),
        sources AS (
            SELECT source ->> 'source' AS source, source ->> 'content' AS content
            FROM (SELECT unnest((manifest -> 'inputs' -> 'sources')::JSON[]) AS source FROM current_snapshot)
        ),
        -- What was read last of each source. Its rejects are shown, also where no snapshot names it: because nothing of it could be used,
        -- or because the source keeps an earlier version.
        latest AS (
            SELECT DISTINCT source, content FROM read_parquet(
                list_prepend(getvariable('empty') || '/history_sources.parquet', getvariable('history_sources')), union_by_name = true
            ) WHERE status <> 'gone'
        ),
        history AS (
            SELECT
                file,
                'history_' || regexp_extract(file, '/history/([a-z_]+)/source_key=', 1) AS view,
                url_decode(replace(regexp_extract(file, '/source_key=([^/]+)/', 1), '_', '%')) AS source,
                regexp_extract(file, '/content=([^/]+)/', 1) AS content
            FROM glob(getvariable('lake') || '/history/*/*/*/*.parquet')
        ),
        generated AS (
            SELECT
                file,
                regexp_extract(file, '/([a-z]+)/[a-z_]+/client_key=', 1) || '_'
                || regexp_extract(file, '/([a-z_]+)/client_key=', 1) AS view,
                url_decode(replace(regexp_extract(file, '/client_key=([^/]+)/', 1), '_', '%')) AS client,
                url_decode(replace(regexp_extract(file, '/contract_key=([^/]+)/', 1), '_', '%')) AS contract,
                regexp_extract(file, '/result=([^/]+)/', 1) AS result
            FROM (
                FROM glob(getvariable('lake') || '/generation/*/*/*/*/*.parquet')
                UNION ALL FROM glob(getvariable('lake') || '/workflows/*/*/*/*/*.parquet')
                UNION ALL FROM glob(getvariable('lake') || '/reports/*/*/*/*/*.parquet')
            )
            WHERE file NOT IN (FROM damaged_files)
        ),
        -- generation/runs is published last: a result that has it is whole.
        whole AS (SELECT client, contract, result FROM generated WHERE view = 'generation_runs'),
        found AS (
            SELECT view, file FROM history SEMI JOIN sources USING (source, content) WHERE view <> 'history_rejects'
            UNION ALL
            SELECT view, file FROM history SEMI JOIN latest USING (source, content) WHERE view = 'history_rejects'
            UNION ALL
            SELECT view, file FROM generated SEMI JOIN current_results USING (client, contract, result)
            UNION ALL
            -- Earlier results that retention keeps: their ranked workflows in a view of their own, and what changed with each of them.
            SELECT CASE view WHEN 'workflows_optimized' THEN 'workflows_earlier' ELSE view END, file
            FROM generated ANTI JOIN current_results USING (client, contract, result)
            SEMI JOIN whole USING (client, contract, result)
            WHERE view IN ('workflows_optimized', 'workflows_changes')
            UNION ALL
            SELECT 'decisions', file FROM glob(getvariable('lake') || '/decisions/*/*/*.parquet') WHERE file NOT IN (FROM damaged_files)
            UNION ALL
            SELECT 'evaluations_' || regexp_extract(file, '/evaluations/([a-z_]+)/', 1), file FROM glob(getvariable('lake') || '/evaluations/*/*/*.parquet')
            UNION ALL
            SELECT 'forecasts_' || regexp_extract(file, '/forecasts/([a-z_]+)/', 1), file FROM glob(getvariable('lake') || '/forecasts/*/*/*/*.parquet')
            UNION ALL
            SELECT 'programs_' || regexp_extract(file, '/programs/([a-z_]+)/', 1), file FROM glob(getvariable('lake') || '/programs/*/*/*.parquet')
            UNION ALL
            -- Every batch of flows that retention keeps; queries take the newest one of a contract by made_at.
            SELECT 'flows_' || regexp_extract(file, '/flows/([a-z_]+)/client_key=', 1), file
            FROM glob(getvariable('lake') || '/flows/*/*/*/*/*.parquet') WHERE file NOT IN (FROM damaged_files)
            UNION ALL
            SELECT 'ops_runs', file FROM glob(getvariable('lake') || '/ops/runs/*/*.parquet')
            UNION ALL
            SELECT 'history_sources', file FROM glob(getvariable('lake') || '/history/sources/*.parquet')
            UNION ALL
            SELECT 'wkg_changes', file FROM glob(getvariable('lake') || '/wkg/changes/*/*.parquet')
            UNION ALL
            SELECT 'wkg_' || regexp_extract(file, '/([a-z_]+)/[^/]+$', 1), file
            FROM glob(getvariable('lake') || '/wkg/' || coalesce(getvariable('snapshot'), '-') || '/*/*.parquet')
        )
    SELECT map_from_entries(list((view, files)))
    FROM (SELECT view, list(file ORDER BY file) AS files FROM found GROUP BY view)
);
