-- latencies.sql, as Spark has it.
SELECT count(*) AS asked, count(nanos) AS answered, avg(nanos) AS mean, max(nanos) AS longest FROM (
    SELECT kind, CASE WHEN lead(kind) OVER same_id = 'b' THEN (lead(ts) OVER same_id) - ts END AS nanos FROM (
        SELECT 'a' AS kind, id, ts FROM "shop:asked" UNION ALL SELECT 'b', id, ts FROM "shop:answered")
    WINDOW same_id AS (PARTITION BY id ORDER BY ts, kind))
WHERE kind = 'a'
