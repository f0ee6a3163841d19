"""Decodes a Perfetto trace by the official descriptors (PyPI: perfetto), and writes as JSON what is in it.

Interned names are resolved, and slices are put together on each track, in the order of times, as trace_processor does it. Fails if a field
is unknown or encoded in another way than it is declared, a track is not described, a slice ends that has not begun, or names are used without the state that they need.
"""
import json
import sys

import wire
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb


def no_unknown(message):
    assert not UnknownFieldSet(message), f"unknown fields in {message}"
    for field, value in message.ListFields():
        if field.message_type:
            for one in value if hasattr(value, "__len__") and not hasattr(value, "ListFields") else [value]:
                no_unknown(one)


trace = pb.Trace()
with open(sys.argv[1], "rb") as file:
    data = file.read()
trace.ParseFromString(data)
wire.check(data, trace)

TYPES = pb.TrackEvent.Type
names, categories, annotations = {}, {}, {}
tracks, events, clocks, has_state = {}, [], [], False


def value(annotation):
    if annotation.dict_entries:
        return {annotations[one.name_iid]: value(one) for one in annotation.dict_entries}
    if annotation.array_values:
        return [value(one) for one in annotation.array_values]
    which = annotation.WhichOneof("value")
    found = getattr(annotation, which) if which else []
    return found if found == found else "NaN"


for packet in trace.packet:
    no_unknown(packet)
    if packet.sequence_flags & pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
        has_state = True
    assert has_state and packet.trusted_packet_sequence_id
    for table, interned in ((names, packet.interned_data.event_names), (categories, packet.interned_data.event_categories),
                            (annotations, packet.interned_data.debug_annotation_names)):
        for one in interned:
            assert one.iid and one.iid not in table
            table[one.iid] = one.name
    if packet.HasField("clock_snapshot"):
        clocks = [(clock.clock_id, clock.timestamp) for clock in packet.clock_snapshot.clocks]
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert not track.HasField("parent_uuid") or track.parent_uuid in tracks
        tracks[track.uuid] = {
            "name": track.name, "parent": track.parent_uuid, "pid": track.process.pid or track.thread.pid, "tid": track.thread.tid,
            "is_process": track.HasField("process"), "is_thread": track.HasField("thread"),
            "process": track.process.process_name, "thread": track.thread.thread_name, "counter": track.HasField("counter"),
        }
    if packet.HasField("track_event"):
        event = packet.track_event
        assert event.track_uuid in tracks, "a track without a descriptor"
        events.append((packet.timestamp, event))

slices, instants, counters, stacks = [], [], [], {}
for time, event in sorted(events, key=lambda one: one[0]):
    name = names[event.name_iid] if event.name_iid else ""
    arguments = {annotations[one.name_iid]: value(one) for one in event.debug_annotations}
    common = {"name": name, "track": event.track_uuid, "args": arguments, "categories": [categories[one] for one in event.category_iids]}
    stack = stacks.setdefault(event.track_uuid, [])
    if event.type == TYPES.TYPE_SLICE_BEGIN:
        common |= {"begin": time, "end": None, "depth": len(stack), "flows": list(event.flow_ids), "from": list(event.terminating_flow_ids),
                   "within": stack[-1]["args"]["span_id"] if stack else None}
        stack.append(common)
        slices.append(common)
    elif event.type == TYPES.TYPE_SLICE_END:
        stack.pop()["end"] = time
    elif event.type == TYPES.TYPE_INSTANT:
        instants.append(common | {"time": time})
    else:
        assert event.type == TYPES.TYPE_COUNTER and tracks[event.track_uuid]["counter"]
        counters.append({"track": tracks[event.track_uuid]["name"], "time": time, "value": event.double_counter_value})

print(json.dumps({"tracks": tracks, "slices": slices, "instants": instants, "counters": counters, "clocks": clocks}, allow_nan=False))
