import type { BrokerHandle, ReplyInput, RequestMessage } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import type { AwaitedReply } from '@signalbox/http-kit/internal'
import { AnswerRelay, argument, isoTime, messageShape, PendingRequests } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { AnswerLimit, messagesOutcome } from './answer-size.ts'
import { emptyNote } from './broker-failures.ts'
import { ADDS, CHANGES, defineTool, READS, withProgress } from './define-tool.ts'
import { confirmation, eventsOutput, failure } from './results.ts'
import type { Tool, ToolContext } from './tool.ts'

/** The commands and queries that models took and have not answered, on this node and on others. */
export class Responders {
  readonly pending = new PendingRequests()
  readonly relay: AnswerRelay

  /** @param system The broker's own handle, which carries answers between nodes */
  constructor(system: BrokerHandle) {
    this.relay = new AnswerRelay(system, this.pending)
  }

  async close(): Promise<void> {
    this.pending.endAll({ error: 'the responder stopped before it answered; it may have executed the request' })
    await this.relay.close()
  }
}

const STRICT = { additionalProperties: false } as const

const waitSeconds = (what: string) =>
  Type.Optional(Type.Integer({ description: `Seconds to wait for ${what}.`, minimum: 1, maximum: 60, default: 5 }))

/** A request that a model has taken. */
interface Taken {
  readonly request: RequestMessage
  readonly awaited: AwaitedReply
}

/** Takes one request: the subscription ends within its handler, so that other responders get the next one. */
async function take(
  responders: Responders,
  type: 'commands' | 'queries',
  channel: string,
  waitMs: number,
  { broker, signal }: ToolContext,
): Promise<Taken | undefined> {
  await responders.relay.open()
  const { promise: first, resolve } = Promise.withResolvers<Taken | undefined>()
  const taken = new AbortController()
  const over = AbortSignal.any([taken.signal, signal, AbortSignal.timeout(waitMs)])
  if (over.aborted) return undefined
  over.addEventListener('abort', () => resolve(undefined), { once: true })
  const subscription = await broker[type].subscribe(channel, { signal: over }, (request) => {
    const awaited = responders.pending.add(broker.caller.clientId, responders.relay.node)
    resolve({ request, awaited })
    taken.abort()
    return replyTo(awaited, request.signal)
  })
  try {
    return await first
  } finally {
    await subscription.close()
  }
}

/** Waits for the answer in a function that does not reference the request, so that it is not kept in memory. */
async function replyTo(awaited: AwaitedReply, requester: AbortSignal): Promise<ReplyInput> {
  const { promise: gone, resolve } = Promise.withResolvers<ReplyInput>()
  const leave = (): void => resolve({ error: 'the requester has left' })
  requester.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([awaited.reply, gone])
  } finally {
    requester.removeEventListener('abort', leave)
    awaited.forget()
  }
}

function requestServe(responders: Responders): Tool {
  return defineTool({
    name: 'request_serve',
    title: 'Take a request',
    summary:
      'Waits for one command or query, and takes it, so that you are its responder. Answer it with request_reply before its deadline. ' +
      'Returns a JSON array of {request_id, deadline, body, metadata, tags}, or [] after wait_timeout_seconds.',
    input: Type.Object(
      {
        channel: argument.channel('The channel of the requests.'),
        type: Type.Unsafe<'commands' | 'queries'>({
          type: 'string',
          enum: ['commands', 'queries'],
          description: 'The type of the requests.',
        }),
        wait_timeout_seconds: waitSeconds('a request'),
      },
      STRICT,
    ),
    output: Type.Object({ requests: Type.Array(Type.Object({})) }),
    annotations: ADDS,
    needs: { action: 'respond', patterns: ['commands', 'queries'] },
    ownTimeout: true,
    onDisconnect: 'cancel',
    async run({ channel, type, wait_timeout_seconds = 5 }, context) {
      const awaited = `a request on channel ${JSON.stringify(channel)}`
      const taken = await withProgress(context, awaited, () =>
        take(responders, type, channel, wait_timeout_seconds * 1000, context),
      )
      if (taken === undefined) return confirmation('[]', { requests: [] })
      const { request, awaited: answer } = taken
      const shape = { request_id: answer.id, deadline: isoTime(request.deadline), ...messageShape(request) }
      const { clientId } = context.broker.caller
      const lost = { error: 'the responder disconnected before it received the request' }
      return {
        ...confirmation(JSON.stringify([shape]), { requests: [shape] }),
        settlement: {
          commit: async () => {},
          rollback: async () => void responders.pending.answer(answer.id, clientId, lost),
        },
      }
    },
  })
}

function requestReply(responders: Responders): Tool {
  return defineTool({
    name: 'request_reply',
    title: 'Answer a request',
    summary:
      'Answers a command or query that request_serve returned, once. The requester gets the body as the reply to its query. With error it is rejected instead.',
    input: Type.Object(
      {
        request_id: argument.text('request_id of request_serve.', { minLength: 1 }),
        body: Type.Optional(argument.text('The reply: text, or JSON as text.', { default: '' })),
        error: Type.Optional(argument.text('The reason of a rejection. Leave it out to accept.', { minLength: 1 })),
        metadata: argument.metadata(),
        tags: argument.tags(),
      },
      STRICT,
    ),
    output: Type.Object({ request_id: Type.String(), executed: Type.Boolean() }),
    annotations: CHANGES,
    needs: { action: 'respond', patterns: ['commands', 'queries'] },
    async run({ request_id, body = '', error, metadata = '', tags = {} }, { broker }) {
      const reply = { body: encodeText(body), metadata, tags, error }
      const { clientId } = broker.caller
      const answered =
        responders.pending.answer(request_id, clientId, reply) ||
        (await responders.relay.forward(request_id, clientId, reply))
      if (!answered) {
        return failure(
          'REQUEST_UNKNOWN: No request with this request_id waits for your answer: it was answered already, its deadline has passed, or its requester has left. Call request_serve for the next one.',
        )
      }
      const done = error === undefined ? 'Request answered.' : 'Request rejected.'
      return confirmation(done, { request_id, executed: error === undefined })
    },
  })
}

const eventsStoreWait = defineTool({
  name: 'events_store_wait',
  title: 'Wait for the next stored event',
  summary:
    'Waits until an events store has an event after a sequence, and returns it. To read many events, use events_store_read. ' +
    'Returns a JSON array with one event as events_store_read, or [] after wait_timeout_seconds.',
  input: Type.Object(
    {
      channel: argument.channel('The events store.'),
      after_sequence: Type.Integer({
        description: 'The last sequence that you know; 0 if you know none.',
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER - 1,
      }),
      wait_timeout_seconds: waitSeconds('an event'),
    },
    STRICT,
  ),
  output: eventsOutput,
  annotations: READS,
  needs: { action: 'subscribe', patterns: ['events_store'] },
  ownTimeout: true,
  onDisconnect: 'cancel',
  async run({ channel, after_sequence, wait_timeout_seconds = 5 }, context) {
    const { broker, signal } = context
    const read = { maxMessages: 1, fromSequence: after_sequence + 1, ...(await new AnswerLimit(context).bound()) }
    let events = await broker.eventsStore.read(channel, read)
    const missing = events.length === 0 ? await emptyNote(broker, 'events_store', channel) : undefined
    if (events.length === 0) {
      const stop = AbortSignal.any([signal, AbortSignal.timeout(wait_timeout_seconds * 1000)])
      await withProgress(context, `an event in events store ${JSON.stringify(channel)}`, () =>
        nextEvent(broker, channel, after_sequence + 1, stop),
      )
      if (!signal.aborted) events = await broker.eventsStore.read(channel, read)
    }
    const stored = events.map((message) => ({ message }))
    return messagesOutcome(
      'events',
      stored,
      ({ message: { sequence, timestamp } }) => ({ sequence, timestamp: isoTime(timestamp) }),
      events.length === 0 ? missing : undefined,
    )
  },
})

/** Resolves when an events store has an entry with this sequence or a later one, or the signal is aborted. */
async function nextEvent(broker: BrokerHandle, channel: string, sequence: number, stop: AbortSignal): Promise<void> {
  if (stop.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  stop.addEventListener('abort', () => resolve(), { once: true })
  const start = { from: 'sequence', sequence } as const
  const subscription = await broker.eventsStore.subscribe(channel, start, { signal: stop }, () => resolve())
  await promise
  await subscription.close()
}

/** Returns the tools with which a model answers requests, and waits for events. */
export function responderTools(responders: Responders): readonly Tool[] {
  return [requestServe(responders), requestReply(responders), eventsStoreWait]
}
