import type { BrokerHandle } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { ManagementError, messageNotFound } from '../errors.ts'
import { editArguments, editProblem, RESENT_FROM } from '../messages/edited-message.ts'
import { MAX_EXAMINED } from '../messages/find-messages.ts'
import { messageCount } from '../messages/shown-message.ts'
import { defineAction, defineManagementRoute, ofType, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { pagingParameters } from '../paging.ts'
import {
  deadLetterGroups,
  deadLetterQueues,
  findDeadLetterQueues,
  groupDeadLetters,
  MAX_GROUPS,
  MAX_LISTED_QUEUES,
  MAX_QUEUES,
  PROBED,
} from './find-dead-letters.ts'
import { MAX_REDRIVEN, redrive, RedriveProgress, rehearseRedrive, selectsAll } from './redrive.ts'
import { MAX_RUNNING, redriveSchema } from './redrives.ts'

/** The most messages that one call looks at for its selection. */
const MAX_SEARCHED = 10_000

const deadLettersRoute = defineManagementRoute({
  name: '/api/dead_letters',
  summary: `The dead letters of a queue, counted by source and reason in up to ${MAX_GROUPS} groups. One request looks at up to ${MAX_EXAMINED} messages, 64 MiB or 5 s.`,
  input: Type.Object(
    {
      channel: argument.channel(`The dead-letter queue. ${argument.CHANNEL_RULES}`),
      from_sequence: Type.Optional(
        Type.Integer({
          description: 'The first message to look at: `next_sequence` of the previous request.',
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
        }),
      ),
    },
    STRICT,
  ),
  output: deadLetterGroups,
  async run({ channel, from_sequence: fromSequence }, { services, operator }) {
    const broker = services.broker.as(operator)
    await broker.channels.info('queues', channel)
    return groupDeadLetters(broker, channel, fromSequence)
  },
})

const deadLetterQueuesRoute = defineManagementRoute({
  name: '/api/dead_letter_queues',
  summary: `The queues that hold dead letters now, with their sources, in pages by name. A queue is listed if one of its first ${PROBED} messages is a dead letter. One request looks at up to ${MAX_QUEUES} queues or 3 s, and lists up to ${MAX_LISTED_QUEUES}.`,
  input: Type.Object({ cursor: pagingParameters.cursor }, STRICT),
  output: deadLetterQueues,
  run: ({ cursor }, { services, operator, environment }) =>
    findDeadLetterQueues(services.broker.as(operator), environment.channelIndex, cursor),
})

const redrivesRoute = defineManagementRoute({
  name: '/api/redrives',
  summary:
    'The redrives that this node runs or has finished, newest first, with their progress and the messages that they left.',
  input: Type.Object({}, STRICT),
  output: Type.Object({
    node: Type.String({ description: 'The node that runs the redrives.' }),
    items: Type.Array(redriveSchema),
  }),
  async run(_query, { environment }) {
    const { node } = await environment.node()
    return { node, items: environment.redrives.list() }
  },
})

const selectionArguments = {
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

const redriveDeadLetters = defineAction({
  name: 'redrive_dead_letters',
  summary: `Sends dead letters to the queues they came from, then removes them from the dead-letter queue. A crash in between may duplicate a message; no message is lost. A selection looks at the first ${MAX_SEARCHED} messages. A dry run counts the messages.`,
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
  output: Type.Object({
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
    const { broker, services, environment, operator, signal } = call
    const { trail } = environment
    const { queue } = await broker.channels.info('queues', channel)
    const progress = new RedriveProgress()
    const maxExamined = selectsAll(selection) ? maxMessages : MAX_SEARCHED
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

const redriveEditedMessage = defineAction({
  name: 'redrive_edited_message',
  summary: `Sends one dead letter, edited, to the queue it came from, then removes it from the dead-letter queue. The message comes from the operator and has the id of the original in the tag ${RESENT_FROM}. The redrive looks at the first ${MAX_SEARCHED} messages.`,
  input: Type.Object(
    {
      channel: argument.channel(`The dead-letter queue. ${argument.CHANNEL_RULES}`),
      id: Type.String({ description: 'The id of the dead letter.', minLength: 1, maxLength: 256 }),
      ...editArguments,
    },
    STRICT,
  ),
  output: Type.Object({
    channel: Type.String(),
    id: Type.String({ description: 'The id of the dead letter.' }),
    sources: sourceCounts,
  }),
  target: ofType('queues'),
  rule: editProblem,
  async run({ channel, id, ...edit }, { broker, services, environment, operator, signal }) {
    await broker.channels.info('queues', channel)
    const progress = new RedriveProgress()
    const found = { channel, selection: { ids: [id] }, maxMessages: 1, maxExamined: MAX_SEARCHED }
    await redrive({
      ...found,
      edit,
      operator,
      broker: services.broker,
      queues: broker.queues,
      signal,
      progress,
      trail: environment.trail,
    })
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

const startRedrive = defineAction({
  name: 'start_redrive',
  summary: `Starts to redrive every dead letter of a queue, or those of one source and reason, and answers at once; /api/redrives shows the progress. Messages that arrive after the start stay. A node runs up to ${MAX_RUNNING} redrives of up to 100,000 messages each, and ends them at its shutdown.`,
  input: Type.Object(
    { channel: argument.channel(`The dead-letter queue. ${argument.CHANNEL_RULES}`), ...selectionArguments },
    STRICT,
  ),
  output: redriveSchema,
  target: ofType('queues'),
  async run({ channel, ...selection }, { broker, services, operator, environment }) {
    const { redrives, trail } = environment
    const { queue } = await broker.channels.info('queues', channel)
    const maxExamined = Math.min(queue?.waiting ?? 0, MAX_REDRIVEN)
    return redrives.start({
      channel,
      selection,
      maxMessages: maxExamined,
      maxExamined,
      lastSequence: await lastSequence(broker, channel, queue?.waiting ?? 0),
      operator,
      queues: broker.queues,
      broker: services.broker,
      trail,
    })
  },
  detail: ({ id, total }) => `redrive ${id} of up to ${total} messages started`,
})

const cancelRedrive = defineAction({
  name: 'cancel_redrive',
  summary: 'Stops a redrive that this node runs. Messages that were sent back stay in their queues.',
  input: Type.Object(
    { id: Type.String({ description: 'The id of the redrive.', minLength: 1, maxLength: 64 }) },
    STRICT,
  ),
  output: redriveSchema,
  run: ({ id }, { environment }) => environment.redrives.cancel(id),
  detail: ({ id, redriven }) => `redrive ${id} stopped, ${messageCount(redriven)} sent back`,
})

export const deadLetterOperations: readonly Operation[] = [
  deadLettersRoute,
  deadLetterQueuesRoute,
  redrivesRoute,
  redriveDeadLetters,
  redriveEditedMessage,
  startRedrive,
  cancelRedrive,
]

/**
 * Returns the sequence of the last message that waits in a queue; 0 if none waits. Engines peek from a
 * sequence on, so this searches: three peeks for a queue without gaps, and a few dozen for one with gaps.
 * @param waiting The number of waiting messages, as far as it is known
 */
async function lastSequence(
  { queues }: Pick<BrokerHandle, 'queues'>,
  channel: string,
  waiting: number,
): Promise<number> {
  const next = async (fromSequence: number): Promise<number | undefined> =>
    (await queues.peek(channel, { maxMessages: 1, maxBytes: 1, fromSequence }))[0]?.sequence
  const first = await next(1)
  if (first === undefined) return 0
  let last = first
  let end = first + Math.max(1, waiting)
  const near = await next(end - 1)
  if (near !== undefined) {
    last = near
    end = near + 1
  }
  for (let step = 1; ; step *= 2) {
    const found = await next(end)
    if (found === undefined) break
    last = found
    end = found + step
  }
  // No message has the sequence `end` or a later one.
  while (last + 1 < end) {
    const middle = Math.ceil((last + end) / 2)
    const found = await next(middle)
    if (found === undefined) end = middle
    else last = found
  }
  return last
}
