import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import type { HttpStep, RawStep } from '../../server/session.ts'
import { JSON_UNITS } from '../json.ts'
import { argumentsText, channelName } from '../messages.ts'
import { almost, weighted, word } from '../pieces.ts'
import { TOOLS } from './mcp.ts'
import type { Shape } from './step.ts'
import { JSON_TYPE, step } from './step.ts'

const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  create_channel: ['channel', 'type'],
  delete_channel: ['channel', 'type'],
  purge_queue: ['channel'],
  pause_queue: ['channel', 'until', 'seconds', 'reason'],
  resume_queue: ['channel'],
  send_queue_message: TOOLS['queue_send'] ?? [],
  receive_queue_messages: TOOLS['queue_receive'] ?? [],
  peek_queue_messages: TOOLS['queue_peek'] ?? [],
  publish_event: TOOLS['events_publish'] ?? [],
  publish_event_store: TOOLS['events_store_publish'] ?? [],
  send_command: TOOLS['command_send'] ?? [],
  send_query: TOOLS['query_send'] ?? [],
  redrive_dead_letters: ['channel', 'max_messages'],
  deregister_agent: ['agent_id'],
  pause_webhook: ['id'],
  resume_webhook: ['id'],
  test_webhook: ['id'],
  redeliver_webhook: ['id', 'sequence'],
  rotate_webhook_secret: ['id'],
}

const action = fc.constantFrom(...Object.entries(ACTIONS)).chain(([name, args]) =>
  almost(argumentsText(args), ...JSON_UNITS).map((body): Shape => ({
    method: 'POST',
    path: `/api/actions/${name}`,
    headers: [JSON_TYPE],
    body,
    listener: 'api',
  })),
)

const READS = [
  '/api/config',
  '/api/snapshot',
  '/v1/stats/channels',
  '/v1/stats/queues',
  '/v1/stats/events_stores',
  '/v1/stats/clients',
  '/api/agents',
  '/api/webhooks',
  '/api/audit',
  '/metrics',
  '/openapi.json',
  '/health',
  '/ready',
  '/api/stats/queues',
]
const READ_PARAMETERS = ['limit', 'cursor', 'channel', 'client', 'type', 'action', 'outcome', 'from', 'to', 'x']

const read = fc
  .tuple(
    fc.constantFrom(...READS),
    fc.array(
      fc.tuple(
        fc.constantFrom(...READ_PARAMETERS),
        fc.oneof(
          word,
          channelName,
          fc.constantFrom(
            '1',
            '1000',
            '0',
            'YQ',
            'queues',
            '2026-01-31T09:30:00Z',
            'success',
            '*a*b*',
            '?'.repeat(200),
          ),
        ),
      ),
      { maxLength: 1, size: 'small' },
    ),
  )
  .map(([path, pairs]): Shape => ({
    method: 'GET',
    path: `${path}?${pairs.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join('&')}`,
    listener: 'api',
  }))

const UPGRADE = [
  ['Upgrade', 'websocket'],
  ['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
  ['Sec-WebSocket-Version', '13'],
] as const

const monitor = fc
  .tuple(
    fc.constantFrom('/api/monitor', '/v1/stats/attach', '/api/x'),
    fc.constantFrom('', '?channel=fuzz.>', '?max_body_size=0', '?channel=%00', '?direction=in&type=queues'),
    almost(
      fc
        .array(
          fc.constantFrom(
            '\u0081\u0085\0\0\0\0start',
            '\u0081\u0084\0\0\0\0stop',
            '\u0088\u0080\0\0\0\0',
            '\u0089\u0080\0\0\0\0',
            '\u0081\u00ff',
            '\u0001\u0080\0\0\0\0',
            '\u0081\u00fe\u00ff\u00ff\0\0\0\0',
            '\u0081\u0001a',
          ),
          { maxLength: 6 },
        )
        .map((frames) => frames.join('')),
      '\u0081\u0080\0\0\0\0',
      '\u0089\u0080\0\0\0\0',
    ),
  )
  .map(([path, query, frames]): RawStep => ({
    kind: 'raw',
    listener: 'api',
    writes: [
      [
        `GET ${path}${query} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n${UPGRADE.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
      ],
      frames,
    ],
    pauseMs: 5,
    end: 'wait',
    patienceMs: 60,
  }))

export const managementStep: Arbitrary<HttpStep | RawStep> = weighted([4, step(action)], [2, step(read)], [1, monitor])
