import type { OutgoingMessage, Reply, RequestOptions, RequestType } from '@signalbox/broker-core'
import { BrokerError, messageSize, unavailable } from '@signalbox/broker-core'
import type { Msg } from '@nats-io/transport-node'
import { createInbox } from '@nats-io/transport-node'
import { Buffer } from 'node:buffer'

import { ENVELOPE_BYTES } from '../envelope.ts'
import type { Parts } from '../parts.ts'
import { decodeAnswer, encodeRequest } from './wire.ts'

/** A request waits for subscribers by asking again this often, in milliseconds, beside listening for them. */
const AGAIN_MS = 1_000
/** A subscriber's node that says nothing for so long is taken for dead, in milliseconds. */
export const SILENCE_MS = 15_000
const MAX_TIMER_MS = 2 ** 31 - 1

interface Pending {
  readonly answer: (message: Msg) => void
  readonly fail: (error: unknown) => void
}

/** Asks, and waits: for a subscriber, then for its answer. */
export class Requester {
  readonly #parts: Parts
  readonly #silenceMs: number
  readonly #inbox = createInbox()
  readonly #pending = new Map<string, Pending>()
  #next = 0
  #closed = false

  constructor(parts: Parts, silenceMs: number) {
    this.#parts = parts
    this.#silenceMs = silenceMs
    parts.connection.nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (!error) this.#receive(message)
      },
    })
  }

  #receive(message: Msg): void {
    const id = message.subject.slice(this.#inbox.length + 1)
    const pending = this.#pending.get(id)
    if (pending) pending.answer(message)
    else this.#cancelLate(id, message)
  }

  /** Somebody took on a request that nobody waits for any more. */
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
    this.#parts.publisher.assertFitsBytes(messageSize(message) + Buffer.byteLength(name) + ENVELOPE_BYTES / 4)
  }

  async request(type: RequestType, name: string, message: OutgoingMessage, options: RequestOptions): Promise<Reply> {
    const { connection, subjects, peers } = this.#parts
    const { timeoutMs, onlyIfSubscribed = false, signal } = options
    const sentAt = Date.now()
    const id = (this.#next++).toString(36)
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    const subject = subjects.request(type, name)
    const holders = new Set<string>()
    let delivered = false
    let waiting = false
    let everyoneWasAsked = false
    let retry: NodeJS.Timeout | undefined
    let silence: NodeJS.Timeout | undefined
    const send = (): void => {
      clearTimeout(retry)
      if (!connection.connected) {
        retry = setTimeout(send, AGAIN_MS)
        return
      }
      waiting = false
      const payload = encodeRequest(name, message, sentAt, timeoutMs)
      this.#parts.publisher.assertFits(payload)
      connection.nc.publish(subject, payload, { reply: `${this.#inbox}.${id}` })
      // A lost connection takes the servers' word that nobody is there with it.
      if (!delivered) retry = setTimeout(() => waiting && send(), AGAIN_MS)
    }
    const nobody = (): void => {
      if (delivered) return
      waiting = true
      clearTimeout(retry)
      retry = setTimeout(send, AGAIN_MS)
      if (onlyIfSubscribed) void giveUp()
    }
    // The servers do not know of subscribers whose node is cut off from them just now: such a node is waited for.
    const giveUp = async (): Promise<void> => {
      if (everyoneWasAsked) return reject(nobodyThere(name, timeoutMs))
      if (!(await peers.everyoneAnswers()) || !waiting || delivered) return
      everyoneWasAsked = true
      send()
    }
    const heard = (): void => {
      clearTimeout(silence)
      silence = setTimeout(() => reject(timedOut(true, name, timeoutMs, 'its node is silent')), this.#silenceMs)
    }
    const answer = (received: Msg): void => {
      if (received.data.length === 0 && received.headers?.code === 503) return nobody()
      const said = decodeAnswer(received.data)
      if (!said) return
      if (said.kind === 'reply') {
        holders.delete(said.node)
        resolve(said.reply)
        return
      }
      if (said.kind === 'gone') {
        if (holders.size === 0) nobody()
        return
      }
      delivered = true
      clearTimeout(retry)
      holders.add(said.node)
      heard()
    }
    const announced = connection.nc.subscribe(subjects.announcement(type, name), {
      callback: (error) => {
        if (!error && waiting && !delivered) send()
      },
    })
    const onAbort = (): void => reject(signal?.reason)
    const timer = setTimeout(() => reject(timedOut(delivered, name, timeoutMs)), Math.min(timeoutMs, MAX_TIMER_MS))
    signal?.addEventListener('abort', onAbort)
    this.#pending.set(id, { answer, fail: reject })
    try {
      send()
      return await promise
    } finally {
      clearTimeout(timer)
      clearTimeout(retry)
      clearTimeout(silence)
      signal?.removeEventListener('abort', onAbort)
      this.#pending.delete(id)
      announced.unsubscribe()
      for (const node of holders) this.#cancel(node, id)
    }
  }

  get closed(): boolean {
    return this.#closed
  }

  close(): void {
    this.#closed = true
    for (const { fail } of this.#pending.values()) fail(unavailable('it is closed'))
  }
}

function nobodyThere(channel: string, timeoutMs: number): BrokerError {
  return new BrokerError('NO_SUBSCRIBER', `nobody is subscribed to ${JSON.stringify(channel)}`, { timeoutMs })
}

function timedOut(delivered: boolean, channel: string, timeoutMs: number, why = ''): BrokerError {
  const shown = JSON.stringify(channel)
  if (!delivered) {
    return new BrokerError('NO_SUBSCRIBER', `nobody was subscribed to ${shown} for ${timeoutMs} ms`, { timeoutMs })
  }
  const detail = why === '' ? `within ${timeoutMs} ms` : `: ${why}`
  return new BrokerError('REQUEST_TIMEOUT', `the subscriber of ${shown} did not answer ${detail}`, { timeoutMs })
}
