-- answers-to-nothing.sql, as DuckDB has it.
SELECT count(*), min(ts), max(seq) FROM (SELECT *, lag(kind) OVER (PARTITION BY id, session ORDER BY ts, kind) AS previous FROM (
    SELECT 'a' AS kind, id, session, ts, seq FROM "shop:asked" UNION ALL SELECT 'b', id, session, ts, seq FROM "shop:answered"))
WHERE kind = 'b' AND previous IS DISTINCT FROM 'a'
