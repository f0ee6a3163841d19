-- The table of all events.
SELECT event, session, count(*) AS events, min(ts) AS first, max(ts) AS last FROM events GROUP BY event, session ORDER BY event, session
