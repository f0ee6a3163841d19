"""Answers queries about a store by Spark: answer.py STORE <QUERIES >ANSWERS, both JSON, like tests/duckdb/answer.py.

The module `traces` is the code in docs/engines.md. A master and two workers run in this process; their executors are processes of their own.
"""

import json
import sys
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

import traces

PARTITIONS = "day=*/host=*/session=*"

store = sys.argv[1]
spark = traces.session("local-cluster[2,1,1024]")

directories = {path.name for path in Path(store).glob(f"{PARTITIONS}/event=*")}
for directory in directories:
    name = unquote(directory.removeprefix("event="))
    traces.view(spark, store, name, f"{PARTITIONS}/{directory}")
    if f"{directory}%232" in directories:
        traces.view(spark, store, f"{name}#*", f"{PARTITIONS}/{directory}{{,%23*}}")
traces.of_the_shop(spark, store)
traces.view(spark, store, "losses", f"losses/{PARTITIONS}")


def plain(value):
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def answer(query):
    return [[plain(value) for value in row] for row in spark.sql(query).collect()]


assert traces.slowest(spark).count() > 1
print(json.dumps([answer(query) for query in json.load(sys.stdin)]))
# All but the driver.
executors = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1
spark.stop()
assert executors == 2, f"there were {executors} executors instead of 2"
