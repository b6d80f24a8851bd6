import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import type { RawStep } from '../../server/session.ts'
import { cloudEventJson } from '../messages.ts'
import type { Pieces } from '../pieces.ts'
import { almost, phrase, weighted } from '../pieces.ts'
import { mcpBody } from './mcp.ts'
import { headerValue, plain } from './step.ts'

const line = weighted(
  [
    2,
    fc
      .tuple(
        fc.constantFrom(
          'Host',
          'host',
          'Content-Length',
          'Transfer-Encoding',
          'Content-Type',
          'Connection',
          'Expect',
          'Upgrade',
          'Trailer',
          'TE',
          'X',
          '',
        ),
        fc.constantFrom(': ', ':', ' : ', ':\t', ''),
        fc.oneof(
          fc.constantFrom(
            'localhost',
            '0',
            '5',
            '-1',
            '99999999999',
            'chunked',
            'chunked, chunked',
            'identity',
            'application/json',
            'keep-alive',
            'close',
            '100-continue',
            'websocket',
            'h2c',
            ' 5',
          ),
          headerValue,
        ),
      )
      .map((parts) => parts.join('')),
  ],
  [1, phrase],
)

const startLine = fc
  .tuple(
    fc.constantFrom('GET', 'POST', 'POST', 'POST', 'OPTIONS', 'HEAD', 'DELETE', 'CONNECT', 'PRI', 'get', ''),
    fc.oneof(
      fc.constantFrom(
        '/mcp',
        '/mcp',
        '/ce/send/event?channel=fuzz.a',
        '/ce/subscribe/events?channel=fuzz.a',
        '/agents/register',
        '/a2a/agent-one',
        '/api/actions/publish_event',
        '/health',
        '*',
        'http://x/mcp',
        '//mcp',
        '/../etc',
        '/%2e%2e',
        '/\0',
      ),
      plain(phrase).map((text) => `/${text}`),
    ),
    fc.constantFrom('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', ''),
  )
  .map((parts) => parts.join(' '))

const chunks = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom('5\r\nhello\r\n', '0\r\n\r\n', 'ffffffff\r\n', '5;ext=a\r\nhello\r\n', '-1\r\n', '5\nhello\n'),
        phrase,
      ),
    ),
    { maxLength: 5 },
  )
  .map((parts) => parts.join(''))
const rawBody = fc.oneof(mcpBody, cloudEventJson, chunks, phrase)

const rawRequest = fc
  .tuple(startLine, fc.array(line, { maxLength: 6 }), fc.boolean(), rawBody)
  .map(([start, lines, fits, body]) => {
    const head = fits
      ? ['Host: localhost', 'Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`, ...lines]
      : lines
    return `${[start, ...head].join('\r\n')}\r\n\r\n${Buffer.from(body).toString('latin1')}`
  })

/** Requests as bytes: several on one connection, cut into parts, with false lengths. */
export const rawStep: Arbitrary<RawStep> = fc.record({
  kind: fc.constant('raw' as const),
  listener: fc.constantFrom('http' as const, 'http' as const, 'api' as const),
  writes: fc.array(
    weighted(
      [4, almost(rawRequest, 'GET /health HTTP/1.1\r\nHost: a\r\n\r\n', 'X: a\r\n', 'a', '\r\n', '1\r\na\r\n')],
      [1, almost(phrase)],
    ),
    { minLength: 1, maxLength: 4 },
  ) satisfies Arbitrary<Pieces[]>,
  pauseMs: fc.constantFrom(0, 0, 2),
  end: fc.constantFrom('finish', 'wait', 'reset'),
  patienceMs: fc.constantFrom(20, 40),
})
