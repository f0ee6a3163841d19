-- about-percentiles.sql, as Spark has it.
SELECT path, approx_percentile(nanos, 0.5) AS p50, approx_percentile(nanos, 0.99) AS p99 FROM "shop:answered" GROUP BY path
