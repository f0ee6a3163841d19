-- Intervals of time, with a filtered count.
SELECT date_bin(INTERVAL '10 milliseconds', ts) AS "from", count(*) AS requests, count(*) FILTER (WHERE status <> 200) AS failed
FROM "shop:answered" WHERE day >= '2020-01-01' AND ts >= '2020-01-01 00:00:00Z' GROUP BY 1 ORDER BY 1
