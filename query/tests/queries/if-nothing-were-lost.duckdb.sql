-- if-nothing-were-lost.sql, as DuckDB has it.
SELECT (SELECT count(*) FROM "shop:answered"), (SELECT sum(events)::BIGINT FROM losses)
