import { randomUUID } from 'node:crypto'

import type { ReplyInput } from '@signalbox/broker-core'

interface Waiting {
  readonly clientId: string
  readonly answer: (reply: ReplyInput) => void
}

/** A command or query that a subscriber received. */
export interface AwaitedReply {
  readonly id: string
  readonly reply: Promise<ReplyInput>
  /** Removes the request, if no requester waits any more. */
  forget(): void
}

/** The commands and queries that subscribers received and have not answered. */
export class PendingRequests {
  readonly #waiting = new Map<string, Waiting>()

  /** The number of requests that wait for their answer. */
  get size(): number {
    return this.#waiting.size
  }

  /**
   * Adds a request that waits for a subscriber's answer. The caller calls `forget` when no requester waits any more.
   * @param node The prefix of the id; it replaces as many random digits
   */
  add(clientId: string, node = ''): AwaitedReply {
    const id = node + randomUUID().slice(node.length)
    const reply = new Promise<ReplyInput>((answer) => this.#waiting.set(id, { clientId, answer }))
    return { id, reply, forget: () => this.#waiting.delete(id) }
  }

  /** Ends every wait with this reply. */
  endAll(reply: ReplyInput): void {
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { answer } of waiting) answer(reply)
  }

  /**
   * Answers a request once. Returns `false` if this principal received no request with this id, so that other
   * principals do not learn if it exists.
   */
  answer(id: string, clientId: string, reply: ReplyInput): boolean {
    const request = this.#waiting.get(id)
    if (request?.clientId !== clientId) return false
    this.#waiting.delete(id)
    request.answer(reply)
    return true
  }
}
