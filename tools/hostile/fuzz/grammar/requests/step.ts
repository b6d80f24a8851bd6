import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import type { HttpStep, Manner } from '../../server/session.ts'
import { phrase, weighted } from '../pieces.ts'

/** Characters that a path or a header can hold unencoded. */
export function plain(text: Arbitrary<string>): Arbitrary<string> {
  return text.map((value) => encodeURIComponent(value.toWellFormed()).slice(0, 2_000))
}

export const headerValue = phrase.map((text) =>
  Array.from(text)
    .filter((character) => character >= ' ' && character <= '~')
    .join(''),
)

const strangeHeaders = fc.array(
  fc.tuple(
    fc.constantFrom(
      'Origin',
      'Host',
      'Accept',
      'Authorization',
      'Forwarded',
      'X-Forwarded-For',
      'Sec-Fetch-Site',
      'Content-Encoding',
      'Content-Type',
      'Connection',
      'Expect',
      'Last-Event-ID',
      'MCP-Protocol-Version',
      'MCP-Session-Id',
      'A2A-Version',
      'X-Broker-Caller-ID',
      'X-Broker-Hops',
      'traceparent',
      'If-None-Match',
      'Access-Control-Request-Method',
      'Transfer-Encoding',
      'Content-Length',
      '__proto__',
      'constructor',
    ),
    fc.oneof(
      headerValue,
      fc.constantFrom(
        'application/json',
        'text/event-stream',
        '2025-11-25',
        '2026-07-28',
        'http://localhost',
        'null',
        'close',
        '100-continue',
        'identity',
        'chunked',
        '0',
        '1',
        'cross-site',
        'Bearer a.b.c',
      ),
    ),
  ),
  { maxLength: 3, size: 'small' },
)

/** Mostly no such header, so that most requests pass. */
const moreHeaders = weighted([3, fc.constant<[string, string][]>([])], [1, strangeHeaders])

const encoding = fc.constantFrom('utf8' as const, 'utf8' as const, 'utf8' as const, 'latin1' as const)

const manner: Arbitrary<Manner> = weighted(
  [8, fc.constant('plain')],
  [1, fc.constantFrom('stalled', 'halting', 'aborting', 'half-closed')],
)

/** The individual parts of a request. */
export type Shape = Partial<HttpStep> & Pick<HttpStep, 'method' | 'path'>

const DEFAULTS = {
  kind: 'http' as const,
  listener: 'http' as const,
  body: [],
  patienceMs: 60,
  reply: null,
}

/** Steps of a route, some with unrelated headers. */
export function step(shape: Arbitrary<Shape>): Arbitrary<HttpStep> {
  return fc
    .tuple(shape, moreHeaders, encoding, manner)
    .map(([given, more, encoding, manner]) =>
      Object.assign({ ...DEFAULTS, encoding, manner }, given, { headers: [...(given.headers ?? []), ...more] }),
    )
}

export const JSON_TYPE = ['Content-Type', 'application/json'] as const
export const JSON_BODY = [JSON_TYPE, ['Accept', 'application/json, text/event-stream'] as const]

export function post(path: string, body: HttpStep['body'], headers: HttpStep['headers'] = [JSON_TYPE]): Shape {
  return { method: 'POST', path, headers, body }
}
