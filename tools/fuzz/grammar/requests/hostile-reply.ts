import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import type { HostileReply } from '../../server/hostile-agent.ts'
import { agentReplyText, eventStreamText } from '../agents.ts'
import { JSON_UNITS } from '../json.ts'
import { almost } from '../pieces.ts'
import { headerValue } from './step.ts'

const pauses = fc.array(fc.constantFrom(0, 1, 5, 40), { maxLength: 3, size: 'small' })

/** A reply of a hostile agent, with right or wrong contents in a right or wrong form. */
export const hostileReply: Arbitrary<HostileReply> = fc.record({
  status: fc.oneof(
    { weight: 6, arbitrary: fc.constant('200 OK') },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '201 Created',
        '204 No Content',
        '302 Found',
        '400 Bad Request',
        '404 Not Found',
        '500 Internal Server Error',
        '503 Service Unavailable',
        '100 Continue',
        '101 Switching Protocols',
        '999 x',
        '0 x',
        'x',
      ),
    },
  ),
  headers: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(['Content-Type: application/json'], ['Content-Type: text/event-stream']) },
    {
      weight: 1,
      arbitrary: fc.array(
        fc.oneof(
          fc.constantFrom(
            'Content-Type: text/plain',
            'Content-Encoding: gzip',
            'Content-Encoding: br, gzip',
            'Location: {{http}}',
            'Connection: keep-alive',
            'Transfer-Encoding: chunked',
            'Set-Cookie: a',
            `X: ${'a'.repeat(20_000)}`,
            'bad header',
            ': x',
            'Content-Length: -1',
          ),
          headerValue.map((value) => `X-A: ${value}`),
        ),
        { maxLength: 3 },
      ),
    },
  ),
  framing: fc.constantFrom('length', 'length', 'chunked', 'close', 'longer', 'shorter', 'broken-chunks', 'none'),
  body: fc.oneof(
    almost(agentReplyText, ...JSON_UNITS),
    almost(eventStreamText, 'data: a\n', '\n', 'data: {"a":1}\n\n', 'event: task.status\n'),
  ),
  pauses,
  end: fc.constantFrom('finish', 'finish', 'finish', 'reset', 'hang'),
})
