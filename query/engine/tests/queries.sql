-- by path
SELECT path, count(*) AS requests, avg(nanos) AS mean, max(nanos) AS longest
FROM "shop:answered" GROUP BY path ORDER BY requests DESC
-- longest
SELECT id, path, nanos FROM "shop:answered" WHERE status = 200 ORDER BY nanos DESC, id, path LIMIT 10
-- about percentiles
SELECT path, approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY nanos) AS p50, approx_percentile_cont(0.99) WITHIN GROUP (ORDER BY nanos) AS p99
FROM "shop:answered" GROUP BY path
-- about percentiles: duckdb
SELECT path, quantile_cont(nanos, 0.5), quantile_cont(nanos, 0.99) FROM "shop:answered" GROUP BY path
-- exact percentiles
SELECT path, percentile_cont(0.9) WITHIN GROUP (ORDER BY CAST(nanos AS DOUBLE)) AS p90, median(CAST(nanos AS DOUBLE)) FROM "shop:answered" GROUP BY path
-- over time
SELECT date_bin(INTERVAL '10 milliseconds', ts) AS "from", count(*) AS requests, count(*) FILTER (WHERE status <> 200) AS failed
FROM "shop:answered" WHERE day >= '2020-01-01' AND ts >= '2020-01-01 00:00:00Z' GROUP BY 1 ORDER BY 1
-- over time: duckdb
SELECT make_timestamp_ns(epoch_ns(ts) // 10000000 * 10000000), count(*), count(*) FILTER (WHERE status <> 200)
FROM "shop:answered" WHERE day >= '2020-01-01' AND ts >= '2020-01-01 00:00:00Z' GROUP BY 1
-- what there is
SELECT event, session, count(*) AS events, min(ts) AS first, max(ts) AS last FROM events GROUP BY event, session ORDER BY event, session
-- before slow ones
SELECT other.event, count(*) AS times
FROM "shop:answered" AS slow JOIN events AS other ON other.stream = slow.stream AND other.seq BETWEEN slow.seq - 5 AND slow.seq - 1
WHERE slow.seq >= 5 AND slow.nanos > 9900 GROUP BY other.event ORDER BY other.event
-- latencies
SELECT count(*) AS asked, count(nanos) AS answered, avg(nanos) AS mean, max(nanos) AS longest
FROM latency('shop:asked', 'shop:answered', 'id') WHERE begin_ts IS NOT NULL
-- latencies: duckdb
SELECT count(*), count(nanos), avg(nanos), max(nanos) FROM (
    SELECT (SELECT min(e.ns) FROM (SELECT id, epoch_ns(ts) AS ns FROM "shop:answered") e WHERE e.id = b.id AND e.ns >= b.ns AND e.ns < b.next) - b.ns AS nanos
    FROM (SELECT id, epoch_ns(ts) AS ns, coalesce(lead(epoch_ns(ts)) OVER (PARTITION BY id ORDER BY ts), 9223372036854775807) AS next FROM "shop:asked") b)
-- without an answer
SELECT id, begin_ts FROM latency('shop:asked', 'shop:answered', 'id', 'session') WHERE end_ts IS NULL ORDER BY begin_ts, id
-- without an answer: duckdb
SELECT id, ts FROM (SELECT *, lead(kind) OVER (PARTITION BY id, session ORDER BY ts, kind) AS next FROM (
    SELECT 'a' AS kind, id, session, ts FROM "shop:asked" UNION ALL SELECT 'b', id, session, ts FROM "shop:answered"))
WHERE kind = 'a' AND next IS DISTINCT FROM 'b'
-- answers to nothing
SELECT count(*), min(end_ts), max(end_seq) FROM latency('shop:asked', 'shop:answered', 'id', 'session') WHERE begin_ts IS NULL
-- answers to nothing: duckdb
SELECT count(*), min(ts), max(seq) FROM (SELECT *, lag(kind) OVER (PARTITION BY id, session ORDER BY ts, kind) AS previous FROM (
    SELECT 'a' AS kind, id, session, ts, seq FROM "shop:asked" UNION ALL SELECT 'b', id, session, ts, seq FROM "shop:answered"))
WHERE kind = 'b' AND previous IS DISTINCT FROM 'a'
-- if nothing were lost
SELECT count(*) AS stored, (SELECT at_least FROM lost('shop:answered')) AS lost_in_its_channels FROM "shop:answered"
-- if nothing were lost: duckdb
SELECT (SELECT count(*) FROM "shop:answered"), (SELECT sum(events)::BIGINT FROM losses)
-- accounts
SELECT name, sum(count) FILTER (WHERE what = 'fired') AS fired, sum(count) FILTER (WHERE what = 'stored') AS stored,
    coalesce(sum(count) FILTER (WHERE what = 'lost'), 0) AS lost
FROM account WHERE scope = 'event' GROUP BY name ORDER BY name
-- losses
SELECT session, what, count(*), sum(events), min(from_ts), max(to_ts) FROM losses GROUP BY session, what
-- all versions
SELECT event, count(*), count(bytes), count(disk), sum(sector) FROM "disk:read#*" GROUP BY event
-- one version
SELECT day, host, disk, count(*) FROM "disk:read#2" GROUP BY day, host, disk
-- days and hosts
SELECT day, host, session, count(*), sum(bytes), min(ts), max(ts) FROM "disk:read" GROUP BY day, host, session
-- one partition
SELECT sector, bytes, ts FROM "disk:read" WHERE day = '2026-11-24' AND host = 'web 2' ORDER BY ts, sector LIMIT 100
-- a time
SELECT host, sector, bytes, ts FROM "disk:read" WHERE ts >= '2026-11-24 01:00:10Z' AND ts < '2026-11-24 01:00:20Z'
-- times of two days
SELECT count(*), sum(bytes) FROM "disk:read" WHERE ts BETWEEN '2026-11-23 01:00:30Z' AND '2026-11-24 01:00:30Z' OR host IS NULL
-- gaps
SELECT stream, seq, ts - lag(ts) OVER (PARTITION BY stream ORDER BY seq) > INTERVAL '900 milliseconds' AS is_long FROM "disk:read" ORDER BY stream, seq LIMIT 200
-- gaps: duckdb
SELECT stream, seq, epoch_ns(ts) - epoch_ns(lag(ts) OVER (PARTITION BY stream ORDER BY seq)) > 900000000 FROM "disk:read" ORDER BY stream, seq LIMIT 200
-- running numbers
SELECT host, ts, row_number() OVER (PARTITION BY host ORDER BY ts, stream, seq) AS number, sum(bytes) OVER (PARTITION BY host ORDER BY ts, stream, seq) AS so_far
FROM "disk:read" WHERE day = '2026-11-23' ORDER BY host, number LIMIT 50
-- texts
SELECT upper(path), length(path), path LIKE '/c%', regexp_replace(path, '^/', ''), count(DISTINCT id) FROM "shop:answered" GROUP BY path
-- with
WITH failed AS (SELECT id, count(*) AS times FROM "shop:answered" WHERE status = 500 GROUP BY id)
SELECT times, count(*) FROM failed WHERE id NOT IN (SELECT id FROM failed WHERE times > 1000) GROUP BY times
-- both events
SELECT asked.id, count(*) FROM "shop:asked" AS asked LEFT JOIN "shop:answered" AS answered
ON asked.stream = answered.stream AND asked.seq + 1 = answered.seq WHERE asked.session = 'shop' AND answered.id IS NULL GROUP BY asked.id
-- before gaps
SELECT session, count(*), sum(lost_before), bool_or(lost_before > 0) FROM "shop:answered" GROUP BY session
-- no rows
SELECT count(*), sum(bytes), min(ts) FROM "disk:read" WHERE day = '1999-01-01'
-- deviation
SELECT host, stddev_samp(CAST(bytes AS DOUBLE)), corr(CAST(bytes AS DOUBLE), CAST(sector AS DOUBLE)) FROM "disk:read" GROUP BY host
