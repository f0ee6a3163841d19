"""Runs the SQL of pages of the book by DuckDB: recipes.py <BLOCKS >ROWS, both JSON. ROWS has for each query of a block the number of its rows."""

import json
import re
import sys

import duckdb

sql = duckdb.connect()
sql.execute("SET TimeZone = 'UTC'")


def rows(block):
    found = []
    statements = re.split(r";\s*$", re.sub(r"^--.*$", "", block, flags=re.M), flags=re.M)
    for statement in filter(None, map(str.strip, statements)):
        if statement.startswith("SELECT"):
            found.append(sql.execute(f"SELECT count(*) FROM ({statement})").fetchall()[0][0])
        else:
            sql.execute(statement)
    return found


print(json.dumps([rows(block) for block in json.load(sys.stdin)]))
