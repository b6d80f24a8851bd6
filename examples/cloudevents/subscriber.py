"""Executes commands: python3 subscriber.py http://127.0.0.1:3000 lights

Needs nothing but Python 3. Commands whose data is not an object with "on" are rejected.
"""

import json
import sys
import urllib.parse
import urllib.request
import uuid

base, channel = sys.argv[1], sys.argv[2]


def answer(request_id, data, rejected=False):
    query = urllib.parse.urlencode({"request_id": request_id, "is_error": str(rejected).lower()})
    event = {"specversion": "1.0", "id": str(uuid.uuid4()), "source": "/lights", "type": "answer", "data": data}
    headers = {"Content-Type": "application/cloudevents+json"}
    body = json.dumps(event).encode()
    urllib.request.urlopen(urllib.request.Request(f"{base}/ce/send/response?{query}", body, headers)).close()


url = f"{base}/ce/subscribe/commands?{urllib.parse.urlencode({'channel': channel})}"
with urllib.request.urlopen(url) as stream:
    print("subscribed", flush=True)
    for line in stream:
        if not line.startswith(b"data: "):
            continue
        command = json.loads(line[6:])
        data = command.get("data")
        if "brokerrequestid" not in command:
            sys.exit(command.get("message"))
        if isinstance(data, dict) and "on" in data:
            print("lights", "on" if data["on"] else "off", flush=True)
            answer(command["brokerrequestid"], {"done": True})
        else:
            answer(command["brokerrequestid"], 'the data must be an object with "on"', rejected=True)
