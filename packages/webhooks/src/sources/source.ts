import type { Message } from '@signalbox/broker-core'

/** A message that is to be delivered. */
export interface Item {
  readonly message: Message
  /** The position in its events store; 0 for other sources. */
  readonly sequence: number
  /** The receipt of its lease; empty for other sources than queues. */
  readonly receipt: string
  /** A stable part of the delivery id. */
  readonly name: string
}

/** The stored or live messages of a subscription. */
export interface Source {
  /**
   * Returns at least one message, or a promise if there is none yet. Throws or rejects with the signal's reason when the
   * source is stopped.
   */
  take(max: number): readonly Item[] | Promise<readonly Item[]>
  /** Called after a message was delivered or became a dead letter. Returns a promise if there is something to do. */
  settle(items: readonly Item[]): Promise<void> | undefined
  /** Called before a pause, in ms, after which the messages are tried again. Returns `false` if they were lost. */
  keep(items: readonly Item[], ms: number): Promise<boolean>
  /** Returns the messages that are not settled to their queue. */
  release(items: readonly Item[]): Promise<void>
  close(): Promise<void>
}
