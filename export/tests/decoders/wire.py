"""Compares the bytes of a protobuf message, field by field, with those that the official descriptors encode it as.

Decoders differ in what they accept: a list of numbers may be packed or not, and Perfetto's own decoder reads each only as it is declared.
"""
from google.protobuf.internal.decoder import _DecodeVarint

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


def fields(data):
    """The fields of an encoded message, by number: their kinds on the wire and their bytes, in their order."""
    found, at = [], 0
    while at < len(data):
        key, at = _DecodeVarint(data, at)
        kind = key & 7
        if kind == VARINT:
            _, end = _DecodeVarint(data, at)
        elif kind == LENGTH:
            length, at = _DecodeVarint(data, at)
            end = at + length
        else:
            end = at + {FIXED64: 8, FIXED32: 4}[kind]
        assert end <= len(data)
        found.append((key >> 3, kind, data[at:end]))
        at = end
    return sorted(found, key=lambda one: one[0])


def check(data, message):
    """Fails if the descriptors encode the message, which was decoded from these bytes, in another way."""
    ours, theirs, name = fields(data), fields(message.SerializeToString()), message.DESCRIPTOR.full_name
    assert [one[:2] for one in ours] == [one[:2] for one in theirs], f"{name}: fields {ours}, declared are {theirs}"
    parts = {}
    for number, _, value in ours:
        field = message.DESCRIPTOR.fields_by_number[number]
        if field.message_type:
            parts.setdefault(field.name, []).append(value)
    for (number, _, value), (_, _, expected) in zip(ours, theirs):
        field = message.DESCRIPTOR.fields_by_number[number]
        assert field.message_type or value == expected, f"{name}.{field.name}: {value}, declared is {expected}"
    for field, values in parts.items():
        part = getattr(message, field)
        for value, one in zip(values, [part] if hasattr(part, "DESCRIPTOR") else part, strict=True):
            check(value, one)
