import type { OutgoingMessage, Reply, RequestOptions, RequestType } from '@signalbox/broker-core/engine'
import { MESSAGE_ENVELOPE_BYTES, messageSize, unavailable } from '@signalbox/broker-core/engine'
import type { Msg } from '@nats-io/transport-node'
import { createInbox } from '@nats-io/transport-node'
import { Buffer } from 'node:buffer'

import type { Parts } from '../parts.ts'
import { PendingRequest } from './pending-request.ts'
import { decodeAnswer } from './answers.ts'

/** The silence after which a subscriber's node counts as dead, in milliseconds. */
export const SILENCE_MS = 15_000

/** The requests of this node, and the inbox of their answers. */
export class Requester {
  readonly #parts: Parts
  readonly #silenceMs: number
  readonly #inbox = createInbox()
  readonly #pending = new Map<string, PendingRequest>()
  #next = 0
  #closed = false

  constructor(parts: Parts, silenceMs: number) {
    this.#parts = parts
    this.#silenceMs = silenceMs
    parts.connection.listen(`${this.#inbox}.*`, (message) => this.#receive(message))
  }

  #receive(message: Msg): void {
    const id = message.subject.slice(this.#inbox.length + 1)
    const pending = this.#pending.get(id)
    if (pending) pending.answer(message)
    else this.#cancelLate(id, message)
  }

  /** Cancels a request that was accepted after its requester stopped waiting. */
  #cancelLate(id: string, message: Msg): void {
    const answer = decodeAnswer(message.data)
    if (answer?.kind === 'accepted' || answer?.kind === 'working') this.#cancel(answer.node, id)
  }

  #cancel(node: string, id: string): void {
    const { connection, subjects } = this.#parts
    if (connection.connected) connection.nc.publish(subjects.node(node, 'cancel'), `${this.#inbox}.${id}`)
  }

  /** @throws BrokerError MESSAGE_TOO_LARGE */
  assertFits(name: string, message: OutgoingMessage): void {
    this.#parts.publisher.assertFitsBytes(messageSize(message) + Buffer.byteLength(name) + MESSAGE_ENVELOPE_BYTES / 4)
  }

  /** Not async, so that only the pending request holds the message while it waits. */
  request(type: RequestType, name: string, message: OutgoingMessage, options: RequestOptions): Promise<Reply> {
    const id = (this.#next++).toString(36)
    const request = { type, name, message, options }
    return this.#settled(id, new PendingRequest(this.#parts, `${this.#inbox}.${id}`, request, this.#silenceMs))
  }

  async #settled(id: string, pending: PendingRequest): Promise<Reply> {
    this.#pending.set(id, pending)
    try {
      pending.start()
      return await pending.reply
    } finally {
      pending.end()
      this.#pending.delete(id)
      for (const node of pending.holders) this.#cancel(node, id)
    }
  }

  get closed(): boolean {
    return this.#closed
  }

  close(): void {
    this.#closed = true
    for (const pending of this.#pending.values()) pending.fail(unavailable('it is closed'))
  }
}
