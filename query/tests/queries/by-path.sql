-- Counts and a mean of each group.
SELECT path, count(*) AS requests, avg(nanos) AS mean, max(nanos) AS longest
FROM "shop:answered" GROUP BY path ORDER BY requests DESC
