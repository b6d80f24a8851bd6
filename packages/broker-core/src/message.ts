/** The most tags of a message from a sender. The broker's own messages may have more. */
export const MAX_TAGS = 256

/** Key-value pairs of a message. Keys and values may contain any characters. */
export type Tags = Readonly<Record<string, string>>

/** The input of a producer. Only the body is required. */
export interface MessageInput {
  /** A text is sent in UTF-8. Do not change bytes before the call has ended: they are read until then. */
  readonly body: string | Uint8Array
  /** @default '' */
  readonly metadata?: string | undefined
  /**
   * The tag `message_id` makes a send to a queue or an events store idempotent, per sender, for two minutes. @default
   * {}
   */
  readonly tags?: Tags
  /**
   * Makes a send idempotent as the tag `message_id` does, and is not stored. The tag has priority. `null`: a repeat is
   * stored again, with the tag too. @default none
   */
  readonly deduplicationKey?: string | null
  /**
   * The time until which a repeat is recognized, in ms since the epoch; each repeat must give the same time. The cluster
   * engine recognizes repeats for two minutes in any case. @default two minutes after the first send
   */
  readonly deduplicationUntil?: number | undefined
}

/** A message as the Broker passes it to an engine: complete except for the fields that the engine sets. */
export interface OutgoingMessage {
  readonly id: string
  /** The verified identity of the sender. */
  readonly clientId: string
  readonly body: Uint8Array
  readonly metadata: string
  readonly tags: Tags
}

/** A message as subscribers and readers see it. */
export interface Message extends OutgoingMessage {
  readonly channel: string
  /** The time at which the engine accepted it, in ms since the epoch. */
  readonly timestamp: number
}

/** An entry of an events store. */
export interface StoredEvent extends Message {
  /** The position in the channel: 1, 2, 3 … Only a compacted store has gaps. */
  readonly sequence: number
  /** The compaction key, if the producer set one. */
  readonly key?: string | undefined
  /** `true` on an entry that deletes its key from a compacted store. */
  readonly tombstone?: true | undefined
}

/** A message in a queue. */
export interface QueueMessage extends Message {
  /** The position in the queue, in the order of sending: 1, 2, 3 … */
  readonly sequence: number
  /** The number of deliveries, including this one; 0 if it was only peeked at. */
  readonly receiveCount: number
  /** The time at which it expires, in ms since the epoch; 0 means never. */
  readonly expiresAt: number
  /** Receives before it moves to `deadLetterQueue`; 0 means unlimited. */
  readonly maxReceiveCount: number
  /** The queue that it moves to after `maxReceiveCount` receives; empty if there is none. */
  readonly deadLetterQueue: string
}

/** A leased queue message. It is settled by `ack` or `nack` with its receipt, or when its lease ends. */
export interface QueueDelivery {
  /** An opaque id of this delivery. */
  readonly receipt: string
  readonly message: QueueMessage
}

/** A command or query as its responder sees it. */
export interface RequestMessage extends Message {
  /** The time at which the requester stops waiting, in ms since the epoch. */
  readonly deadline: number
  /** Aborted when the requester no longer waits: it timed out, disconnected, or got another responder's answer. */
  readonly signal: AbortSignal
}

/** The answer to a command or query. */
export interface Reply {
  /** `false` when the responder rejected the request; `error` contains the reason. */
  readonly executed: boolean
  /** Empty when `executed`. */
  readonly error: string
  readonly body: Uint8Array
  readonly metadata: string
  readonly tags: Tags
}

/** The members that a message gets from its engine and its channel. */
type Added<M extends Message> = Omit<M, keyof OutgoingMessage>

/** Returns the content of a message, without what its engine and channel added. */
export function contentOf({ id, clientId, body, metadata, tags }: OutgoingMessage): OutgoingMessage {
  return { id, clientId, body, metadata, tags }
}

/** Returns a sent message as subscribers see it. */
export function toMessage(
  { id, clientId, body, metadata, tags }: OutgoingMessage,
  { channel, timestamp }: Added<Message>,
): Message {
  return { id, clientId, body, metadata, tags, channel, timestamp }
}

/** Returns an appended message as an entry of its events store. */
export function toStoredEvent(
  { id, clientId, body, metadata, tags }: OutgoingMessage,
  { channel, timestamp, sequence, key, tombstone }: Added<StoredEvent>,
): StoredEvent {
  return { id, clientId, body, metadata, tags, channel, timestamp, sequence, key, tombstone }
}

/** Returns a sent message as its receivers see it. */
export function toQueueMessage(
  { id, clientId, body, metadata, tags }: OutgoingMessage,
  added: Added<QueueMessage>,
): QueueMessage {
  const { channel, timestamp, sequence, receiveCount, expiresAt, maxReceiveCount, deadLetterQueue } = added
  return {
    id,
    clientId,
    body,
    metadata,
    tags,
    channel,
    timestamp,
    sequence,
    receiveCount,
    expiresAt,
    maxReceiveCount,
    deadLetterQueue,
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Encodes a text as a body, in UTF-8. */
export function encodeText(text: string): Uint8Array {
  return encoder.encode(text)
}

/** Decodes the text of a body; undefined if the bytes are not UTF-8. */
export function decodeText(body: Uint8Array): string | undefined {
  try {
    return decoder.decode(body)
  } catch {
    return undefined
  }
}
