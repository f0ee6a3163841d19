-- Losses of each session.
SELECT session, what, count(*), sum(events), min(from_ts), max(to_ts) FROM losses GROUP BY session, what
