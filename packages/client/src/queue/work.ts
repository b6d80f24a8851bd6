import type { QueueMessage } from './leased-message.ts'

/** The context of a message that a handler works on. */
export interface Work<T = unknown> extends QueueMessage<T> {
  /** Aborts when the lease is lost, or when a drain runs out of time: stop then, another worker gets the message. */
  readonly signal: AbortSignal
}

export type WorkHandler<T> = (data: T, work: Work<T>) => unknown
