#!/usr/bin/env bash
# Examples with curl: bash walk.sh http://127.0.0.1:3000
set -euo pipefail
CE="${1:-http://127.0.0.1:9090}/ce"

say() { printf '\n# %s\n' "$1"; }

say 'Store an event in structured mode: the whole event is the body.'
curl -sS "$CE/send/event-store" -H 'Content-Type: application/cloudevents+json' -d '{
  "specversion": "1.0", "id": "1", "source": "/shop", "type": "com.example.order.created",
  "subject": "orders", "data": {"order": "tea", "price": 12345678901234567890.10}
}'

say 'Send an event to a queue in binary mode: attributes are headers, the data is the body.'
curl -sS "$CE/queue/send?channel=jobs" -H 'ce-specversion: 1.0' -H 'ce-id: 2' -H 'ce-source: /shop' \
  -H 'ce-type: com.example.job' -H 'ce-note: 100%25 caf%C3%A9' -H 'Content-Type: text/plain' -d 'brew the tea'

say 'Lease it for 60 seconds …'
answer=$(curl -sS -X POST "$CE/queue/receive?channel=jobs&visibility_seconds=60")
echo "$answer"

say '… and acknowledge it with its receipt.'
receipt=$(sed -n 's/.*"receipt":"\([^"]*\)".*/\1/p' <<<"$answer")
curl -sS -X POST -G "$CE/queue/ack" --data-urlencode "receipt=$receipt"

say 'Read the events store from its first event; --max-time ends the stream.'
curl -sSN --max-time 2 "$CE/subscribe/events-store?channel=orders&events_store_type=2" || [ $? -eq 28 ]

say 'A reserved channel is refused.'
curl -sS -X POST "$CE/queue/ack_all?channel=_AGENTS_.discovery"
echo
