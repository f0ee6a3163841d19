-- without-an-answer.sql, as DuckDB has it.
SELECT id, ts FROM (SELECT *, lead(kind) OVER (PARTITION BY id, session ORDER BY ts, kind) AS next FROM (
    SELECT 'a' AS kind, id, session, ts FROM "shop:asked" UNION ALL SELECT 'b', id, session, ts FROM "shop:answered"))
WHERE kind = 'a' AND next IS DISTINCT FROM 'b'
