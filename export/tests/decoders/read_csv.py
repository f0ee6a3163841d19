"""Reads comma-separated values with a header line, and writes the lines as JSON. Fails if a line has more or fewer columns."""
import csv
import json
import sys

with open(sys.argv[1], newline="", encoding="utf-8") as file:
    lines = list(csv.DictReader(file, strict=True))
assert all(None not in line and None not in line.values() for line in lines)
print(json.dumps(lines))
