-- over-time.sql, as DuckDB has it.
SELECT make_timestamp_ns(epoch_ns(ts) // 10000000 * 10000000), count(*), count(*) FILTER (WHERE status <> 200)
FROM "shop:answered" WHERE day >= '2020-01-01' AND ts >= '2020-01-01 00:00:00Z' GROUP BY 1
