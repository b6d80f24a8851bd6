import type { ClientContext } from './client-context.ts'
import { callSignal } from './client-context.ts'
import { contentOf, eventText, isObject } from './cloud-event.ts'
import { SignalboxError } from './errors.ts'
import { callCe, callTool } from './http-calls.ts'
import type { Call } from './transport.ts'

/** Options of every message that is sent. */
export interface MessageOptions {
  /**
   * The id of the message. A repeat with the same id within two minutes is stored once, in queues and events stores.
   * @default a random id
   */
  readonly id?: string | undefined
  /** The CloudEvent's type. @default the client's */
  readonly type?: string | undefined
  /** @default `application/json`; `text/plain` for strings, `application/octet-stream` for bytes */
  readonly contentType?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** A message that the server has stored. */
export interface Stored {
  readonly id: string
  /** The sequence number in the channel. */
  readonly sequence: number
  /** `true` if a message with this id was stored before: nothing was added. */
  readonly duplicate: boolean
}

/** A store of messages: where {@link storeMessage} sends to. */
export interface StoreTarget {
  readonly channel: string
  readonly tool: 'queue_send' | 'events_store_publish'
  readonly path: '/ce/queue/send' | '/ce/send/event-store'
  /** Settings of the message, with the same names on both surfaces. */
  readonly settings: Readonly<Record<string, string | number | undefined>>
}

/**
 * Stores a message; repeats it for the time of the option `retryFor`. Text and JSON go to `/mcp`: the tag `message_id`, which makes a repeat safe, exists there only.
 * Bytes go to `/ce`, and are repeated only if the server has certainly not processed them.
 */
export async function storeMessage(
  context: ClientContext,
  { channel, tool, path, settings }: StoreTarget,
  data: unknown,
  options: MessageOptions,
): Promise<Stored> {
  const { id = crypto.randomUUID(), type = context.type } = options
  const { source, retryForMs } = context
  const signal = callSignal(context, options.signal)
  const content = contentOf(data, options.contentType)
  if (content.text === undefined) {
    const body = eventText({ id, source, type, channel }, content)
    const call = eventCall(path, body, { ...settings }, signal)
    const { data: answer } = await callCe(context.transport, { ...call, retryForMs })
    const [first] = isObject(answer) && Array.isArray(answer['events']) ? answer['events'] : []
    return stored(id, first)
  }
  const tags = {
    message_id: id,
    ce_specversion: '1.0',
    ce_id: id,
    ce_source: source,
    ce_type: type,
    ce_subject: channel,
    ce_datacontenttype: content.contentType,
  }
  const result = await callTool(context.transport, {
    tool,
    arguments: { channel, body: content.text, tags, ...settings },
    repeatable: true,
    retryForMs,
    signal,
  })
  return stored(id, result)
}

function stored(id: string, result: unknown): Stored {
  if (!isObject(result) || typeof result['sequence'] !== 'number') {
    throw new SignalboxError('RESPONSE_INVALID', 'the answer to a send has no sequence; check the URL of the server')
  }
  return { id, sequence: result['sequence'], duplicate: result['duplicate'] === true }
}

/** Returns the call that sends one event in its JSON form. */
export function eventCall(path: string, body: string, query: Call['query'], signal: AbortSignal): Call {
  return {
    method: 'POST',
    path,
    headers: { 'Content-Type': 'application/cloudevents+json' },
    body,
    repeatable: false,
    signal,
    query,
  }
}
