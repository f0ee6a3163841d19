-- latencies.sql, as DuckDB has it.
SELECT count(*), count(nanos), avg(nanos), max(nanos) FROM (
    SELECT (SELECT min(e.ns) FROM (SELECT id, epoch_ns(ts) AS ns FROM "shop:answered") e WHERE e.id = b.id AND e.ns >= b.ns AND e.ns < b.next) - b.ns AS nanos
    FROM (SELECT id, epoch_ns(ts) AS ns, coalesce(lead(epoch_ns(ts)) OVER (PARTITION BY id ORDER BY ts), 9223372036854775807) AS next FROM "shop:asked") b)
