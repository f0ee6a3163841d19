"""Decodes OTLP spans by the official descriptors (PyPI: opentelemetry-proto), from JSON lines or from length-delimited protobuf, and writes
them as JSON. Fails if a field is unknown, or encoded in another way than it is declared, or an id has the wrong length.
"""
import base64
import json
import sys

import wire
from google.protobuf import json_format
from google.protobuf.internal.decoder import _DecodeVarint32
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def with_base64(found):
    """OTLP has ids in base 16, where the JSON of protobuf has bytes in base 64."""
    if isinstance(found, dict):
        return {key: base64.b64encode(bytes.fromhex(one)).decode() if key in ("traceId", "spanId", "parentSpanId") else with_base64(one)
                for key, one in found.items()}
    return [with_base64(one) for one in found] if isinstance(found, list) else found


requests = []
with open(sys.argv[1], "rb") as file:
    data = file.read()
if data.startswith(b"{"):
    for line in data.decode().splitlines():
        requests.append(json_format.ParseDict(with_base64(json.loads(line)), ExportTraceServiceRequest()))
else:
    at = 0
    while at < len(data):
        length, at = _DecodeVarint32(data, at)
        requests.append(ExportTraceServiceRequest.FromString(data[at:at + length]))
        wire.check(data[at:at + length], requests[-1])
        at += length


def no_unknown(message):
    assert not UnknownFieldSet(message), f"unknown fields in {message}"
    for field, value in message.ListFields():
        if field.message_type:
            for one in value if not hasattr(value, "ListFields") else [value]:
                no_unknown(one)


def plain(value):
    which = value.WhichOneof("value")
    found = getattr(value, which) if which else None
    if which == "array_value":
        return [plain(one) for one in found.values]
    return found if found == found else "NaN"


def attributes(message):
    return {one.key: plain(one.value) for one in message.attributes}


spans = []
for request in requests:
    no_unknown(request)
    for of_resource in request.resource_spans:
        for scope in of_resource.scope_spans:
            for span in scope.spans:
                assert len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) in (0, 8)
                spans.append({
                    "resource": attributes(of_resource.resource), "trace": span.trace_id.hex(), "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(), "name": span.name, "begin": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano, "args": attributes(span), "dropped": span.dropped_events_count,
                    "events": [{"name": one.name, "time": one.time_unix_nano, "args": attributes(one)} for one in span.events],
                    "status": [span.status.code, span.status.message],
                })
print(json.dumps({"requests": len(requests), "spans": spans}, allow_nan=False))
