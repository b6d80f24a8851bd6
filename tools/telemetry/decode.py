"""Decodes export requests with the official Python definitions (opentelemetry-proto), and counts their spans.

Usage: decode.py FOLDER, with the files that tests keep with OTLP_FOLDER=FOLDER.
"""

import base64
import json
import pathlib
import sys

from google.protobuf import json_format
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = ("traceId", "spanId", "parentSpanId")


def with_base64_ids(value: object) -> object:
    """JSON of OTLP has hexadecimal ids; the definitions expect base64."""
    if isinstance(value, list):
        return [with_base64_ids(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: base64.b64encode(bytes.fromhex(each)).decode() if name in IDS else with_base64_ids(each)
        for name, each in value.items()
    }


def unknown_fields(message: object) -> int:
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            count += sum(map(unknown_fields, value if field.is_repeated else [value]))
    return count


counts = {".json": [0, 0], ".pb": [0, 0]}
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    request = ExportTraceServiceRequest()
    if path.suffix == ".json":
        json_format.ParseDict(with_base64_ids(json.loads(path.read_text())), request)
    else:
        request.ParseFromString(path.read_bytes())
        if unknown_fields(request) > 0:
            raise SystemExit(f"{path}: {unknown_fields(request)} unknown fields")
    spans = [span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans]
    for span in spans:
        if len(span.trace_id) != 16 or len(span.span_id) != 8 or span.kind == 0 or span.name == "":
            raise SystemExit(f"{path}: {span}")
    counts[path.suffix][0] += 1
    counts[path.suffix][1] += len(spans)
for suffix, (requests, spans) in counts.items():
    print(f"{suffix}: {requests} requests, {spans} spans decoded")
