-- Ends without a begin.
SELECT count(*), min(end_ts), max(end_seq) FROM latency('shop:asked', 'shop:answered', 'id', 'session') WHERE begin_ts IS NULL
