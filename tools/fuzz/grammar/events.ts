import * as fc from 'fast-check'
import type { Arbitrary } from 'fast-check'

import { jsonText, listText, objectText, oneOfTexts, quoted } from './json.ts'
import { channelName } from './messages.ts'
import { phrase, word } from './pieces.ts'

const SECRET = `"whsec_${Buffer.alloc(32, 1).toString('base64')}"`

const url = fc.oneof(
  quoted(fc.constantFrom('https://example.invalid/hook', 'http://127.0.0.1:1/', 'https://[::1]/', 'https://a:b@c/#d')),
  quoted(phrase),
)

/** Cursors of a channel, and texts that are almost one. */
export const cursorText: Arbitrary<string> = fc.oneof(
  fc
    .tuple(fc.constantFrom('1', '2', ''), fc.oneof(fc.nat().map(String), word), word, word)
    .map((parts) => Buffer.from(parts.join('.')).toString('base64url')),
  word,
)

const filter = objectText({
  sql: quoted(fc.oneof(fc.constantFrom("type = 'a'", 'total > 1', 'EXISTS a', 'a) OR (b'), phrase)),
})

/** The body of a subscription of `/ce/subscriptions`. */
export const subscriptionText: Arbitrary<string> = objectText(
  {
    sink: url,
    protocol: oneOfTexts('"HTTP"', '"MQTT"'),
    config: objectText(
      {
        channel: quoted(channelName),
        type: oneOfTexts('"events_store"', '"events"', '"queues"', '"commands"'),
        mode: oneOfTexts('"structured"', '"binary"', '"batch"'),
        start: oneOfTexts('"new"', '"first"', '1', '0', '1.5', '9007199254740993'),
        ordered: oneOfTexts('true', 'false'),
        secret: oneOfTexts(SECRET, '"whsec_AAAA"', '""'),
      },
      ['channel'],
    ),
    filters: listText(filter),
  },
  ['sink', 'config'],
)

/** The methods of events. */
export const EVENT_METHODS = [
  'events/list',
  'events/poll',
  'events/stream',
  'events/subscribe',
  'events/unsubscribe',
] as const

/**
 * The params of a request about events.
 * @param meta The member `_meta`
 */
export function eventParams(meta: Arbitrary<string> = fc.constant('{}')): Arbitrary<string> {
  return objectText(
    {
      name: oneOfTexts('"events_store.appended"', '"events.published"', '"queue.message_waiting"', '"none"', '7'),
      arguments: objectText({ channel: quoted(channelName) }),
      cursor: fc.oneof(quoted(cursorText), fc.constantFrom('null', '"{{cursor}}"', '7')),
      maxAgeMs: oneOfTexts('0', '1000', '-1', '1e400', 'null'),
      maxEvents: oneOfTexts('1', '100', '0', '1.5', '9007199254740993'),
      ttlMs: oneOfTexts('60000', 'null', '-1'),
      delivery: fc.oneof(
        objectText({ mode: oneOfTexts('"webhook"', '"mail"'), url, secret: oneOfTexts(SECRET, '"whsec_AAAA"') }),
        jsonText,
      ),
      _meta: meta,
    },
    ['name', 'arguments', '_meta'],
  )
}
