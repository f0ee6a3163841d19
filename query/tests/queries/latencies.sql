-- The time from an event to its answer, by an id.
SELECT count(*) AS asked, count(nanos) AS answered, avg(nanos) AS mean, max(nanos) AS longest
FROM latency('shop:asked', 'shop:answered', 'id') WHERE begin_ts IS NOT NULL
