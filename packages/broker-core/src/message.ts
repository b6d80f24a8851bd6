/** Key-value pairs that travel with a message. Keys and values may hold any characters. */
export type Tags = Readonly<Record<string, string>>

/** What a producer hands in. Everything but the body may be left out. */
export interface MessageInput {
  readonly body: Uint8Array
  /** @default '' */
  readonly metadata?: string
  /** @default {} A tag `message_id` makes a send to a queue or an events store idempotent for two minutes, for its sender (C5). */
  readonly tags?: Tags
}

/** A message as the Broker hands it to an Engine: complete but for what only the engine can say. */
export interface OutgoingMessage {
  readonly id: string
  /** The verified identity of the caller who sent it. */
  readonly clientId: string
  readonly body: Uint8Array
  readonly metadata: string
  readonly tags: Tags
}

/** A message as every subscriber and reader sees it. */
export interface Message extends OutgoingMessage {
  readonly channel: string
  /** When the engine accepted it, milliseconds since the epoch. */
  readonly timestamp: number
}

/** An entry of an events store. */
export interface StoredEvent extends Message {
  /** 1, 2, 3 … for each channel; with gaps only in a compacted log. */
  readonly sequence: number
  /** The compaction key, where the producer gave one. */
  readonly key?: string
  /** True on an entry that deletes its key from a compacted log. */
  readonly tombstone?: true
}

/** A message in a queue. */
export interface QueueMessage extends Message {
  /** 1, 2, 3 … for each queue, in the order of sending. */
  readonly sequence: number
  /** How often it was delivered, this delivery included; 0 when it was only peeked at before any delivery. */
  readonly receiveCount: number
  /** When it expires, milliseconds since the epoch; 0 is never. */
  readonly expiresAt: number
  /** Receives before it moves to `deadLetterQueue`; 0 is unlimited. */
  readonly maxReceiveCount: number
  /** Where it moves after `maxReceiveCount` receives; empty is nowhere. */
  readonly deadLetterQueue: string
}

/** A leased queue message. It is settled by `ack` or `nack` with its receipt, or by the end of its lease. */
export interface QueueDelivery {
  /** Opaque; addresses this one delivery. */
  readonly receipt: string
  readonly message: QueueMessage
}

/** A command or query as its subscriber sees it. */
export interface RequestMessage extends Message {
  /** When the requester stops waiting, milliseconds since the epoch. */
  readonly deadline: number
  /** Aborted when the requester no longer waits: it timed out, went away, or somebody else answered. */
  readonly signal: AbortSignal
}

/** The answer to a command or query. */
export interface Reply {
  /** False when the subscriber rejected the request; `error` then says why. */
  readonly executed: boolean
  /** Empty when `executed`. */
  readonly error: string
  readonly body: Uint8Array
  readonly metadata: string
  readonly tags: Tags
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The bytes of a text body. */
export function encodeText(text: string): Uint8Array {
  return encoder.encode(text)
}

/** The text of a body, or undefined when its bytes are not UTF-8. */
export function decodeText(body: Uint8Array): string | undefined {
  try {
    return decoder.decode(body)
  } catch {
    return undefined
  }
}
