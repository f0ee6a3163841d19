"""Counts the events of each host in a store by DuckDB: read_store.py STORE, JSON.

`accounts` are the events that were fired, of the highest count of each trace: its chunks count on. `seconds` is the processor time of a query of one kind of event by
path, the median of five.
"""

import json
import sys
import time

import duckdb

store = sys.argv[1]
sql = duckdb.connect()
sql.execute("SET threads = 1")
EVENTS = f"read_parquet('{store}/day=*/host=*/session=*/event=*/*.parquet', hive_partitioning = true, union_by_name = true)"
REQUESTS = f"read_parquet('{store}/day=*/host=*/session=*/event=fleet%3Arequest/*.parquet', hive_partitioning = true)"
ACCOUNT = f"read_parquet('{store}/account/day=*/host=*/session=*/*.parquet', hive_partitioning = true)"
QUERY = f"SELECT path, count(*), avg(nanos), quantile_cont(nanos, 0.99), count(*) FILTER (status >= 500) FROM {REQUESTS} GROUP BY path"


def timed():
    began = time.process_time()
    assert sql.execute(QUERY).fetchall()
    return time.process_time() - began


rows = dict(sql.execute(f"SELECT host, count(*) FROM {EVENTS} GROUP BY host").fetchall())
accounts = dict(
    sql.execute(f"""
        SELECT host, sum(fired)::BIGINT FROM (
            SELECT host, pid, channel, name, max(count) AS fired FROM {ACCOUNT} WHERE scope = 'event' AND what = 'fired' GROUP BY ALL)
        GROUP BY host""").fetchall()
)
print(json.dumps({"rows": rows, "accounts": accounts, "seconds": sorted(timed() for _ in range(5))[2]}))
