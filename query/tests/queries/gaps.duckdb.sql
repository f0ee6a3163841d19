-- gaps.sql, as DuckDB has it.
SELECT stream, seq, epoch_ns(ts) - epoch_ns(lag(ts) OVER (PARTITION BY stream ORDER BY seq)) > 900000000 FROM "disk:read" ORDER BY stream, seq LIMIT 200
