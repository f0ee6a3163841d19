-- Begins without an end.
SELECT id, begin_ts FROM latency('shop:asked', 'shop:answered', 'id', 'session') WHERE end_ts IS NULL ORDER BY begin_ts, id
