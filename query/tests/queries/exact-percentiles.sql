-- Percentiles and medians that are no estimates.
SELECT path, percentile_cont(0.9) WITHIN GROUP (ORDER BY CAST(nanos AS DOUBLE)) AS p90, median(CAST(nanos AS DOUBLE)) FROM "shop:answered" GROUP BY path
