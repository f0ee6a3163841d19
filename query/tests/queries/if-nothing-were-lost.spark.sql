-- if-nothing-were-lost.sql, as Spark has it.
SELECT count(*) AS stored, (SELECT sum(events) FROM losses) AS lost_in_its_channels FROM "shop:answered"
