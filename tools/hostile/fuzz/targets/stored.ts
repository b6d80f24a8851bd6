import { Buffer } from 'node:buffer'

import * as fc from 'fast-check'

import { channelFrom, ownerIn } from '../../../../packages/engine-nats/src/channels/stored-channel.ts'
import { decodeEnvelope, encodeEnvelope } from '../../../../packages/engine-nats/src/envelope.ts'
import { parseAckSubject } from '../../../../packages/engine-nats/src/queues/ack-subject.ts'
import { Subjects } from '../../../../packages/engine-nats/src/subjects.ts'
import { ManagementError } from '../../../../packages/management-api/src/errors.ts'
import { cursorKey } from '../../../../packages/management-api/src/paging.ts'
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
      fields: fc.dictionary(fc.constantFrom('due', 'dead'), fc.oneof(fc.integer(), wellFormed)),
      body: wellFormed,
    }),
    check({ id, channel, tags, fields, body }) {
      const envelope = { id, clientId: id, channel, metadata: body, tags, fields, body: Buffer.from(body) }
      const again = decodeEnvelope(encodeEnvelope(envelope))
      assertSame('envelope', { ...again, body: Buffer.from(again?.body ?? []) }, envelope)
    },
  }),
  parserTarget({
    name: 'envelope-bytes',
    about: 'bytes in the NATS cluster that no node wrote',
    input: fc.record({ bytes: fc.array(fc.nat(255), { maxLength: 80 }), head: fc.nat(100), cut: fc.nat(80) }),
    check({ bytes, head, cut }) {
      decodeEnvelope(Buffer.from(bytes))
      const valid = Buffer.from(
        encodeEnvelope({
          id: 'a',
          clientId: 'b',
          channel: 'c',
          metadata: 'd',
          tags: { e: 'f' },
          fields: { g: 1 },
          body: Buffer.from(bytes),
        }),
      )
      valid.writeUInt32LE(head, 1)
      decodeEnvelope(valid)
      decodeEnvelope(valid.subarray(0, cut))
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
