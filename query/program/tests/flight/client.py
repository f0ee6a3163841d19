"""Asks a server of Arrow Flight SQL: client.py URL ask|look|token TOKEN|endless. Writes JSON.

ask: reads a list of queries, and writes for each its rows, and what may be missing in them; and the rows of the first as a prepared statement.
"""

import json
import os
import sys

import adbc_driver_flightsql.dbapi as flightsql
from adbc_driver_flightsql import DatabaseOptions

url, what = sys.argv[1:3]


def connected(**options):
    return flightsql.connect(url, db_kwargs=options, autocommit=True)


def plain(value):
    import datetime
    import decimal

    if isinstance(value, decimal.Decimal):
        return float(value)
    if isinstance(value, (datetime.date, datetime.datetime, datetime.timedelta)):
        return str(value)
    return value


def rows(table):
    # Times of nanoseconds as numbers: Python's have microseconds.
    import pyarrow as pa

    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type) else column
        for column in table.columns
    ]
    return [[plain(value) for value in row] for row in zip(*(column.to_pylist() for column in columns))]


def ask(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        table = cursor.fetch_arrow_table()
        missing = json.loads((table.schema.metadata or {}).get(b"tracepoint.missing", b"null"))
    return {"rows": rows(table), "missing": missing}


def ask_prepared(connection, sql):
    with connection.cursor() as cursor:
        cursor.adbc_prepare(sql)
        cursor.execute(sql)
        return rows(cursor.fetch_arrow_table())


def error(connection, sql):
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            cursor.fetchall()
    except flightsql.Error as refused:
        return str(refused)
    return None


def look(connection):
    found = connection.adbc_get_objects(depth="all").read_all().to_pylist()
    schemas = [schema for catalog in found for schema in catalog["catalog_db_schemas"]]
    tables = {
        table["table_name"]: [column["column_name"] for column in table["table_columns"]]
        for schema in schemas
        for table in schema["db_schema_tables"]
    }
    count = lambda name: ask(connection, f"SELECT count(*) FROM {name}")["rows"]
    return {
        "catalogs": [catalog["catalog_name"] for catalog in found],
        "schemas": [schema["db_schema_name"] for schema in schemas],
        "types": connection.adbc_get_table_types(),
        "tables": tables,
        "vendor": connection.adbc_get_info()["vendor_name"],
        "bare": count('"shop:asked"'),
        "qualified": count('datafusion.public."shop:asked"'),
        "refused": [
            error(connection, sql)
            for sql in ["CREATE TABLE a (b INT)", "INSERT INTO losses VALUES (1)", "COPY losses TO '/tmp/a.csv'", "SET a.b = 1"]
        ],
        "unknown": error(connection, 'SELECT * FROM "shop:answred"'),
    }


def is_served(**options):
    try:
        with connected(**options) as connection:
            return ask(connection, "SELECT 1 AS n")["rows"] == [[1]]
    except flightsql.Error as refused:
        assert "token" in str(refused), refused
        return False


if what == "ask":
    with connected() as connection:
        queries = json.load(sys.stdin)
        answers = [ask(connection, sql) for sql in queries]
        print(json.dumps({"answers": answers, "prepared": ask_prepared(connection, queries[0])}))
elif what == "look":
    with connected() as connection:
        print(json.dumps(look(connection)))
elif what == "token":
    token, header = sys.argv[3], DatabaseOptions.AUTHORIZATION_HEADER.value

    print(
        json.dumps(
            {
                "without": is_served(),
                "wrong": is_served(**{header: "Bearer wrong"}),
                "bearer": is_served(**{header: f"Bearer {token}"}),
                "password": is_served(username="anybody", password=token),
            }
        )
    )
elif what == "endless":
    with connected() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT value FROM generate_series(1, 1000000000000)")
        reader = cursor.fetch_record_batch()
        assert reader.read_next_batch().num_rows > 0
        print("rows come", flush=True)
        try:
            for batch in reader:
                pass
            print("all rows have come", flush=True)
        except Exception:
            print("the end is told as an error", flush=True)
        # The statement cannot be closed any more.
        os._exit(0)
