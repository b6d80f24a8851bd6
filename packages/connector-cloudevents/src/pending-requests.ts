import { randomUUID } from 'node:crypto'

import type { ReplyInput } from '@signalbox/broker-core'

interface Waiting {
  readonly clientId: string
  readonly answer: (reply: ReplyInput) => void
}

/** A command or query that was handed to a subscriber. */
export interface AwaitedReply {
  readonly id: string
  readonly reply: Promise<ReplyInput>
  /** Nobody waits any more. */
  forget(): void
}

/** Commands and queries that subscribers were handed and have not answered. */
export class PendingRequests {
  readonly #waiting = new Map<string, Waiting>()

  /** How many wait for their answer. */
  get size(): number {
    return this.#waiting.size
  }

  /**
   * Begins to wait for the answer of a subscriber. Whoever makes it calls `forget` when nobody waits any more.
   * @param node What the id begins with, in place of as many of its random digits.
   */
  add(clientId: string, node = ''): AwaitedReply {
    const id = node + randomUUID().slice(node.length)
    const reply = new Promise<ReplyInput>((answer) => this.#waiting.set(id, { clientId, answer }))
    return { id, reply, forget: () => this.#waiting.delete(id) }
  }

  /** Nobody will answer any more: ends every wait with this reply. */
  endAll(reply: ReplyInput): void {
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { answer } of waiting) answer(reply)
  }

  /**
   * Answers a request, once. False when there is none with this id that this principal was handed: others are not told
   * whether there is.
   */
  answer(id: string, clientId: string, reply: ReplyInput): boolean {
    const request = this.#waiting.get(id)
    if (request?.clientId !== clientId) return false
    this.#waiting.delete(id)
    request.answer(reply)
    return true
  }
}
