import { Buffer } from 'node:buffer'

import { JsonRpcError, parseJsonRpc } from '@signalbox/http-kit'
import * as fc from 'fast-check'

import { CeError } from '../../../../packages/connector-cloudevents/src/errors.ts'
import { readNewSubscription } from '../../../../packages/connector-cloudevents/src/push/push-route.ts'
import { cursorOf, readCursor } from '../../../../packages/connector-mcp/src/events/event-log.ts'
import {
  readListParams,
  readPollParams,
  readStreamParams,
  readSubscribeParams,
  readUnsubscribeParams,
} from '../../../../packages/connector-mcp/src/events/event-selection.ts'
import { JSON_UNITS, oneOfTexts } from '../grammar/json.ts'
import { cursorText, EVENT_METHODS, eventParams, jsonRpc, subscriptionText } from '../grammar/messages.ts'
import { almost, phrase, textOf } from '../grammar/pieces.ts'
import { assertHolds, assertSame, parserTarget, resultOf } from '../target.ts'

const READERS = [readListParams, readPollParams, readStreamParams, readSubscribeParams, readUnsubscribeParams]

const MAX_REFUSAL = 16_384

/** Bodies of webhook subscriptions, and requests about events. */
export const eventTargets = [
  parserTarget({
    name: 'ce-subscription',
    about: 'bodies of webhook subscriptions, with their filters',
    input: almost(subscriptionText, ...JSON_UNITS, '{"sql":"a"},'),
    check(pieces) {
      try {
        const { sink, config } = readNewSubscription(Buffer.from(textOf(pieces)))
        assertHolds('a subscription without an endpoint or a channel is accepted', sink !== '' && config.channel !== '')
      } catch (error) {
        if (!(error instanceof CeError)) throw error
        assertSame('the code of a refused subscription', error.code, 'SUBSCRIPTION_INVALID')
        assertHolds(`a refusal takes ${error.message.length} characters`, error.message.length < MAX_REFUSAL)
      }
    },
  }),
  parserTarget({
    name: 'mcp-event-params',
    about: 'params of the methods of events',
    input: fc.constantFrom(...EVENT_METHODS).chain((method) =>
      fc.record({
        reader: fc.constant(EVENT_METHODS.indexOf(method)),
        pieces: almost(jsonRpc(oneOfTexts(JSON.stringify(method)), eventParams()), ...JSON_UNITS),
      }),
    ),
    check({ reader, pieces }) {
      const message = resultOf(() => parseJsonRpc(Buffer.from(textOf(pieces))), JsonRpcError)
      if (message?.kind !== 'request') return
      try {
        READERS[reader]?.(message)
      } catch (error) {
        if (!(error instanceof JsonRpcError)) throw error
        assertSame('the code of refused params', error.code, -32602)
        assertHolds(`a refusal takes ${error.message.length} characters`, error.message.length < MAX_REFUSAL)
      }
    },
  }),
  parserTarget({
    name: 'mcp-event-cursor',
    about: 'cursors of events, which keep their position',
    input: fc.record({
      channel: phrase,
      cursor: almost(cursorText, 'A', '.', '=', '-'),
      next: fc.integer({ min: 1 }),
    }),
    check({ channel, cursor, next }) {
      const read = readCursor(channel, textOf(cursor))
      if (read !== undefined)
        assertSame('a cursor after a round trip', readCursor(channel, cursorOf(channel, read)), read)
      const position = { next, mark: '' }
      assertSame('the position of a cursor', readCursor(channel, cursorOf(channel, position)), position)
      assertHolds(
        'a cursor is valid for another channel',
        readCursor(`${channel}.x`, cursorOf(channel, position)) === undefined,
      )
    },
  }),
]
