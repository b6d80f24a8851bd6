import type { ClientContext } from './client-context.ts'
import { contentOf, eventText, isObject } from './cloud-event.ts'
import { SignalboxError } from './errors.ts'
import type { StoreTarget } from './send-batches.ts'

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

/**
 * Stores a message, in one request with others that are sent to the channel at about the same time. Repeated for the
 * time of the option `retryFor`: the server recognizes a repeated message by its source and id.
 */
export async function storeMessage(
  context: ClientContext,
  { channel, path, settings }: StoreTarget,
  data: unknown,
  options: MessageOptions,
): Promise<Stored> {
  const { id = crypto.randomUUID(), type = context.type } = options
  const { signal } = options
  signal?.throwIfAborted()
  const event = eventText({ id, source: context.source, type, channel }, contentOf(data, options.contentType))
  const result = await context.sends.store({ channel, path, settings }, event, signal)
  if (!isObject(result) || typeof result['sequence'] !== 'number') {
    throw new SignalboxError('RESPONSE_INVALID', 'the answer to a send has no sequence; check the URL of the server')
  }
  return { id, sequence: result['sequence'], duplicate: result['duplicate'] === true }
}
