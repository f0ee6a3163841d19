"""Answers queries about a store by DuckDB: answer.py STORE <QUERIES >ANSWERS, both JSON. A query is a text, an answer a list of rows.

Times become nanoseconds, and days texts.
"""

import json
import sys
from pathlib import Path
from urllib.parse import unquote

import duckdb

store = Path(sys.argv[1])
sql = duckdb.connect()
sql.execute("SET TimeZone = 'UTC'")


def view(name, pattern):
    source = f"read_parquet('{store}/{pattern}/*.parquet', hive_partitioning = true, union_by_name = true)"
    sql.execute(f'CREATE VIEW "{name}" AS SELECT * FROM {source}')


directories = {path.name for path in store.glob("day=*/host=*/session=*/event=*")}
for directory in directories:
    name = unquote(directory.removeprefix("event="))
    view(name, f"day=*/host=*/session=*/{directory}")
    base = name.split("#")[0]
    if name == base and any(unquote(other).startswith(f"event={base}#") for other in directories):
        view(f"{base}#*", f"day=*/host=*/session=*/{directory}*")
view("events", "day=*/host=*/session=*/event=*")
view("account", "account/day=*/host=*/session=*")
view("losses", "losses/day=*/host=*/session=*")


def plain(column):
    name, ty = '"' + column[0].replace('"', '""') + '"', str(column[1])
    if ty.startswith("TIMESTAMP"):
        return f"epoch_ns({name})"
    if ty in ("DATE", "HUGEINT", "UHUGEINT"):
        return f"{name}::VARCHAR"
    return f"{name}::DOUBLE" if ty.startswith("DECIMAL") else name


def answer(query):
    columns = ", ".join(plain(column) for column in sql.execute(f"DESCRIBE {query}").fetchall())
    rows = sql.execute(f"SELECT {columns} FROM ({query})").fetchall()
    return [list(row) for row in rows]


print(json.dumps([answer(query) for query in json.load(sys.stdin)], default=str))
