-- Groups by columns of partitions.
SELECT day, host, session, count(*), sum(bytes), min(ts), max(ts) FROM "disk:read" GROUP BY day, host, session
