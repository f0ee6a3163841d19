-- over-time.sql, as Spark has it.
SELECT ts DIV 10000000 * 10000000 AS "from", count(*) AS requests, count(*) FILTER (WHERE status <> 200) AS failed
FROM "shop:answered" WHERE day >= '2020-01-01' AND ts >= unix_micros(TIMESTAMP '2020-01-01 00:00:00Z') * 1000 GROUP BY 1 ORDER BY 1
