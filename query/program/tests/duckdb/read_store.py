"""Reads a store by DuckDB, which knows nothing of its writer, and prints what it finds as JSON: read_store.py STORE [ID]."""

import json
import sys

import duckdb

store = sys.argv[1]
events = f"read_parquet('{store}/day=*/host=*/session=*/event=*/*.parquet', hive_partitioning = true, union_by_name = true)"
account = f"read_parquet('{store}/account/**/*.parquet', hive_partitioning = true)"
losses = f"read_parquet('{store}/losses/**/*.parquet', hive_partitioning = true, union_by_name = true)"
answered = f"read_parquet('{store}/day=*/host=*/session=*/event=shop%3Aanswered/*.parquet', hive_partitioning = true)"
sql = duckdb.connect()


def rows(query):
    return sql.execute(query).fetchall()


def counts(what, scope="event"):
    query = f"SELECT name, sum(count)::BIGINT FROM {account} WHERE scope = '{scope}' AND what = '{what}' GROUP BY ALL"
    return dict(rows(query))


def table(query):
    # There is no table of losses without a loss.
    try:
        return rows(query)
    except duckdb.IOException:
        return [(0,)]


found = {
    "rows": dict(rows(f"SELECT event, count(*) FROM {events} GROUP BY ALL")),
    "sessions": rows(f"SELECT DISTINCT session, host = (SELECT any_value(host) FROM {account}) FROM {events}"),
    "fired": counts("fired"),
    "recorded": counts("recorded"),
    "stored": counts("stored"),
    "lost": counts("lost"),
    "missing": table(f"SELECT coalesce(sum(events), 0)::BIGINT FROM {losses}")[0][0],
    "lost_before": rows(f"SELECT sum(lost_before)::BIGINT FROM {events}")[0][0],
    "nanos": rows(f"SELECT sum(nanos)::BIGINT FROM {answered}")[0][0],
    "by_path": dict(rows(f"SELECT path, count(*) FROM {answered} GROUP BY ALL")),
    "types": dict((row[0], row[1]) for row in rows(f"DESCRIBE SELECT * FROM {answered}")),
    "duplicates": rows(f"SELECT count(*) - count(DISTINCT (stream, seq)) FROM {events}")[0][0],
    "days": rows(f"SELECT count(*) FROM {events} WHERE day::VARCHAR <> strftime(ts AT TIME ZONE 'UTC', '%Y-%m-%d')")[0][0],
}
if len(sys.argv) > 2:
    found["one"] = rows(f"SELECT id, path FROM {answered} WHERE id = {sys.argv[2]}")
    groups = rows(f"""
        SELECT count(*), count(*) FILTER (stats_min_value::UBIGINT <= {sys.argv[2]} AND stats_max_value::UBIGINT >= {sys.argv[2]})
        FROM parquet_metadata('{store}/day=*/host=*/session=*/event=shop%3Aanswered/*.parquet') WHERE path_in_schema = 'id'""")
    found["row_groups"], found["row_groups_with_id"] = groups[0]
print(json.dumps(found, default=str))
