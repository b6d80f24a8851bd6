import { Buffer } from 'node:buffer'

import { decodeQueueMessage, encodeQueueMessage } from '@signalbox/broker-core/engine'
import * as fc from 'fast-check'

import { channelFrom, ownerIn } from '../../../../packages/engine-nats/src/channels/channel-bucket.ts'
import { parseAckSubject } from '../../../../packages/engine-nats/src/pulls.ts'
import { Subjects } from '../../../../packages/engine-nats/src/subjects.ts'
import { cursorKey } from '../../../../packages/management-api/src/paging.ts'
import { ManagementError } from '../../../../packages/management-api/src/errors.ts'
import { JSON_UNITS, jsonText, objectText, oneOfTexts, quoted } from '../grammar/json.ts'
import { almost, phrase, textOf, word } from '../grammar/pieces.ts'
import { assertHolds, assertSame, parserTarget, resultOf } from '../target.ts'

const subjects = new Subjects('fuzz')
const wellFormed = phrase.filter((text) => text.isWellFormed())

export const storedTargets = [
  parserTarget({
    name: 'envelope',
    about: 'messages in the NATS cluster: read as they were written',
    input: fc.record({
      id: wellFormed,
      channel: wellFormed,
      tags: fc.dictionary(wellFormed, wellFormed),
      dueAt: fc.nat(),
      deadLetterQueue: wellFormed,
      origin: fc.option(wellFormed, { nil: undefined }),
      body: wellFormed,
    }),
    check({ id, channel, tags, body, dueAt, deadLetterQueue, origin }) {
      // The members in the order of the reader: they are compared as JSON.
      const message = { id, clientId: id, body: Buffer.from(body), metadata: body, tags }
      const written = { message, dueAt, expiresAt: 0, maxReceiveCount: 0, deadLetterQueue, origin }
      const again = decodeQueueMessage(encodeQueueMessage(channel, written))
      const read = again && { ...again, message: { ...again.message, body: Buffer.from(again.message.body) } }
      assertSame('envelope', read, written)
    },
  }),
  parserTarget({
    name: 'envelope-bytes',
    about: 'bytes in the NATS cluster that no node wrote',
    input: fc.record({ bytes: fc.array(fc.nat(255), { maxLength: 80 }), head: fc.nat(100), cut: fc.nat(80) }),
    check({ bytes, head, cut }) {
      decodeQueueMessage(Buffer.from(bytes))
      const valid = Buffer.from(
        encodeQueueMessage('c', {
          message: { id: 'a', clientId: 'b', metadata: 'd', tags: { e: 'f' }, body: Buffer.from(bytes) },
          dueAt: 1,
          expiresAt: 0,
          maxReceiveCount: 0,
          deadLetterQueue: '',
          origin: undefined,
        }),
      )
      valid.writeUInt32LE(head, 1)
      decodeQueueMessage(valid)
      decodeQueueMessage(valid.subarray(0, cut))
    },
  }),
  parserTarget({
    name: 'stored-channel',
    about: 'entries of the NATS bucket of channels, and subjects of acknowledgements',
    input: fc.record({
      entry: almost(
        objectText({
          type: oneOfTexts('"queues"', '"events_store"'),
          name: quoted(word),
          incarnation: quoted(word),
          options: jsonText,
        }),
        ...JSON_UNITS,
      ),
      owner: almost(quoted(word), '"', '\\'),
      subject: almost(fc.constant('$JS.ACK.s.c.1.2.3.1700000000000000000.4'), '.', '9'),
    }),
    check({ entry, owner, subject }) {
      channelFrom(subjects, subjects.channelKey('queues', 'a'), textOf(entry), 1)
      ownerIn(`queues ${textOf(owner)}`)
      parseAckSubject(textOf(subject, 4_096))
    },
  }),
  parserTarget({
    name: 'cursor',
    about: 'cursors of lists',
    input: almost(
      phrase.map((text) => Buffer.from(text).toString('base64url')),
      'A',
      '-',
      '=',
    ),
    check(pieces) {
      const key = resultOf(() => cursorKey(textOf(pieces, 1_024)), ManagementError)
      assertHolds('a cursor has no key', key === undefined || typeof key === 'string')
    },
  }),
]
