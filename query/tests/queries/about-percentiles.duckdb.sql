-- about-percentiles.sql, as DuckDB has it.
SELECT path, quantile_cont(nanos, 0.5), quantile_cont(nanos, 0.99) FROM "shop:answered" GROUP BY path
