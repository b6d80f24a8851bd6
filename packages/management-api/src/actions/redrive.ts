import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { selectsAll } from '../dead-letters/dead-letter.ts'
import { ManagementError, messageNotFound } from '../errors.ts'
import { lastSequence } from '../dead-letters/last-sequence.ts'
import { RedriveProgress, redrive, rehearseRedrive } from '../dead-letters/redrive.ts'
import { editArguments, editProblem, RESENT_FROM } from '../messages/edited-message.ts'
import { defineAction, ofType, STRICT } from './action.ts'
import { messageCount } from './message-count.ts'

/** The most messages that one call looks at for its selection. */
const MAX_EXAMINED = 10_000

export const selectionArguments = {
  source: Type.Optional(argument.channel('Only dead letters that came from this queue.')),
  reason: Type.Optional(
    Type.String({ description: 'Only dead letters with this reason, such as max_receive_count.', maxLength: 256 }),
  ),
}

const leftMessages = Type.Array(
  Type.Object({
    id: Type.String({ description: 'The id of a message that remains in the dead-letter queue.' }),
    reason: Type.String(),
  }),
)

const sourceCounts = Type.Array(Type.Object({ source: Type.String(), count: Type.Integer({ minimum: 1 }) }), {
  description: 'The messages by the queue that they came from.',
})

function countsOf({ bySource }: RedriveProgress) {
  return [...bySource].map(([source, count]) => ({ source, count }))
}

export const redriveDeadLetters = defineAction({
  name: 'redrive_dead_letters',
  summary: `Sends dead letters to the queues they came from, then removes them from the dead-letter queue. A crash in between may duplicate a message; no message is lost. A selection looks at the first ${MAX_EXAMINED} messages. A dry run counts the messages.`,
  input: Type.Object(
    {
      channel: argument.channel(`The dead-letter queue. ${argument.CHANNEL_RULES}`),
      max_messages: Type.Optional(
        Type.Integer({ description: 'The most messages to send back.', minimum: 1, maximum: 1000, default: 100 }),
      ),
      ...selectionArguments,
      ids: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
          description: 'Only the messages with these ids.',
          minItems: 1,
          maxItems: 100,
        }),
      ),
      dry_run: Type.Optional(
        Type.Boolean({ description: 'True counts the messages and changes nothing.', default: false }),
      ),
    },
    STRICT,
  ),
  data: Type.Object({
    channel: Type.String(),
    redriven: Type.Integer({ minimum: 0, description: 'The number of messages sent back.' }),
    left: leftMessages,
    dry_run: Type.Optional(Type.Literal(true, { description: 'Present after a dry run: nothing was changed.' })),
    would_redrive: Type.Optional(
      Type.Integer({ minimum: 0, description: 'After a dry run: the messages that a redrive sends back now.' }),
    ),
    sources: Type.Optional(sourceCounts),
  }),
  target: ofType('queues'),
  async run({ channel, max_messages: maxMessages = 100, dry_run = false, ...selection }, call) {
    const { broker, services, operator, signal, trail } = call
    const { queue } = await broker.channels.info('queues', channel)
    const progress = new RedriveProgress()
    const maxExamined = selectsAll(selection) ? maxMessages : MAX_EXAMINED
    const request = { channel, selection, maxMessages, maxExamined, operator, broker: services.broker, progress, trail }
    if (dry_run) {
      await rehearseRedrive(request, broker)
      const { left, redriven } = progress
      return { channel, redriven: 0, left, dry_run, would_redrive: redriven, sources: countsOf(progress) }
    }
    const last = await lastSequence(broker, channel, queue?.waiting ?? 0)
    await redrive({ ...request, lastSequence: last, queues: broker.queues, signal })
    return { channel, redriven: progress.redriven, left: progress.left }
  },
  detail: ({ redriven, left, would_redrive: counted }) =>
    counted === undefined
      ? `${messageCount(redriven)} sent back, ${left.length} left`
      : `dry run: ${messageCount(counted)} would be sent back, ${left.length} left`,
})

export const redriveEditedMessage = defineAction({
  name: 'redrive_edited_message',
  summary: `Sends one dead letter, edited, to the queue it came from, then removes it from the dead-letter queue. The message comes from the operator and has the id of the original in the tag ${RESENT_FROM}. The redrive looks at the first ${MAX_EXAMINED} messages.`,
  input: Type.Object(
    {
      channel: argument.channel(`The dead-letter queue. ${argument.CHANNEL_RULES}`),
      id: Type.String({ description: 'The id of the dead letter.', minLength: 1, maxLength: 256 }),
      ...editArguments,
    },
    STRICT,
  ),
  data: Type.Object({
    channel: Type.String(),
    id: Type.String({ description: 'The id of the dead letter.' }),
    sources: sourceCounts,
  }),
  target: ofType('queues'),
  rule: editProblem,
  async run({ channel, id, ...edit }, { broker, services, operator, signal, trail }) {
    await broker.channels.info('queues', channel)
    const progress = new RedriveProgress()
    const found = { channel, selection: { ids: [id] }, maxMessages: 1, maxExamined: MAX_EXAMINED }
    await redrive({ ...found, edit, operator, broker: services.broker, queues: broker.queues, signal, progress, trail })
    const [left] = progress.left
    if (left !== undefined) {
      throw new ManagementError('REDRIVE_REFUSED', `the message stays in the dead-letter queue: ${left.reason}`, {
        ...left,
      })
    }
    if (progress.redriven === 0) throw messageNotFound({ type: 'queues', channel }, { id })
    return { channel, id, sources: countsOf(progress) }
  },
  detail: ({ id }) => `message ${id} edited and sent back`,
})
