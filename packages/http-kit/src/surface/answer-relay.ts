import { randomUUID } from 'node:crypto'

import { isBrokerError } from '@signalbox/broker-core'
import type { BrokerHandle, ReplyInput, RequestMessage, Subscription } from '@signalbox/broker-core'

/** Time for the node with a subscriber's stream to accept an answer, in ms. */
const TIMEOUT_MS = 5_000

const NODE_DIGITS = 8
const REQUEST_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const REQUEST_TAG = 'ce_answer_to'
const CLIENT_TAG = 'ce_answer_by'
const ERROR_TAG = 'ce_answer_error'
/** Prefix of the answer's own tags. */
const OWN_TAG = 'own_'

/**
 * Forwards a subscriber's answer to the node that has the subscriber's stream, if the answer reaches another node. A
 * request's id begins with the id of its node. An answer is a Query on `_AGENTS_.replies/{node}`. The Query fails at
 * once without a subscriber there, so an invented id or a stopped node causes no wait.
 */
export class AnswerRelay {
  /** The prefix of the ids of this node's requests. */
  readonly node = randomUUID().slice(0, NODE_DIGITS)
  readonly #system: BrokerHandle
  readonly #pending: PendingRequests
  #subscription: Promise<Subscription> | undefined

  constructor(system: BrokerHandle, pending: PendingRequests) {
    this.#system = system
    this.#pending = pending
  }

  /** Subscribes to the answers that reach other nodes. @throws BrokerError ENGINE_UNAVAILABLE */
  async open(): Promise<void> {
    const subscription = (this.#subscription ??= this.#subscribe())
    const again = (): void => {
      if (this.#subscription === subscription) this.#subscription = undefined
    }
    try {
      const { closed } = await subscription
      void closed.then(again)
    } catch (error) {
      again()
      throw error
    }
  }

  #subscribe(): Promise<Subscription> {
    return this.#system.queries.subscribe(channelOf(this.node), {}, (message) => this.#take(message))
  }

  #take({ body, metadata, tags }: RequestMessage): ReplyInput {
    const { [REQUEST_TAG]: id = '', [CLIENT_TAG]: clientId = '', [ERROR_TAG]: error } = tags
    const own = Object.entries(tags).filter(([name]) => name.startsWith(OWN_TAG))
    const reply = {
      body,
      metadata,
      tags: Object.fromEntries(own.map(([name, value]) => [name.slice(OWN_TAG.length), value])),
      error,
    }
    return this.#pending.answer(id, clientId, reply) ? {} : { error: 'unknown' }
  }

  /**
   * Answers a request of another node. Resolves with `false` if the node waits for no answer of this principal with
   * this id, or does not run.
   * @throws BrokerError REQUEST_TIMEOUT if the node does not answer, MESSAGE_TOO_LARGE, ENGINE_UNAVAILABLE
   */
  async forward(id: string, clientId: string, { body, metadata, tags = {}, error }: ReplyInput): Promise<boolean> {
    if (!REQUEST_ID.test(id) || id.startsWith(this.node)) return false
    const carried: Record<string, string> = { [REQUEST_TAG]: id, [CLIENT_TAG]: clientId }
    if (error !== undefined) carried[ERROR_TAG] = error
    for (const name of Object.keys(tags)) carried[OWN_TAG + name] = tags[name] ?? ''
    const message = { body: body ?? new Uint8Array(0), tags: carried, metadata }
    try {
      const { executed } = await this.#system.queries.send(channelOf(id), message, {
        timeoutMs: TIMEOUT_MS,
        onlyIfSubscribed: true,
      })
      return executed
    } catch (failure) {
      if (isBrokerError(failure) && failure.code === 'NO_SUBSCRIBER') return false
      throw failure
    }
  }

  /** Stops to receive answers from other nodes. Idempotent. */
  async close(): Promise<void> {
    const subscription = this.#subscription
    this.#subscription = undefined
    await (await subscription?.catch(() => undefined))?.close()
  }
}

function channelOf(id: string): string {
  return `_AGENTS_.replies/${id.slice(0, NODE_DIGITS)}`
}

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
