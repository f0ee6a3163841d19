-- Losses before events.
SELECT session, count(*), sum(lost_before), bool_or(lost_before > 0) FROM "shop:answered" GROUP BY session
