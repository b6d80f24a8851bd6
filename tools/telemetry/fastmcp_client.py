"""Calls tools of a server with the client of FastMCP, within the span that TRACEPARENT names.

Usage: fastmcp_client.py URL TOOL ARGUMENTS [TOOL ARGUMENTS ...]
ARGUMENTS is JSON; "$receipt" in it is the receipt of the last received message.
"""

import asyncio
import json
import os
import re
import sys

from fastmcp import Client
from opentelemetry import context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator


async def main(url: str, *calls: str) -> None:
    if "TRACEPARENT" in os.environ:
        carrier = {"traceparent": os.environ["TRACEPARENT"]}
        context.attach(TraceContextTextMapPropagator().extract(carrier))
    receipt = ""
    async with Client(f"{url}/mcp") as client:
        for tool, arguments in zip(calls[::2], calls[1::2]):
            result = await client.call_tool(tool, json.loads(arguments.replace("$receipt", receipt)))
            text = result.content[0].text
            receipt = (re.findall(r'"receipt":\s*"([^"]+)"', text) or [receipt])[0]
            print(text)


asyncio.run(main(*sys.argv[1:]))
