-- Estimates of percentiles: `about` in the name means that answers may differ by 3 %.
SELECT path, approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY nanos) AS p50, approx_percentile_cont(0.99) WITHIN GROUP (ORDER BY nanos) AS p99
FROM "shop:answered" GROUP BY path
