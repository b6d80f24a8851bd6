import type { QueueDelivery, QueueReceiveInput, Queues } from '@signalbox/broker-core'

import type { HttpConnection, HttpResponse } from './http-message.ts'
import { InFlight } from './in-flight.ts'

/** The settlement of the leased messages in an answer: `commit` removes them, `rollback` returns them to the queue. */
export interface Settlement {
  commit(): Promise<void>
  rollback(): Promise<void>
}

/**
 * Settles messages some time after their answer was written. A successful write to the socket proves nothing: the
 * reset of a killed client arrives about 100 ms later.
 *
 * Messages are committed after a grace period, or earlier: when the next request arrives on the connection (its
 * client has read the answer), when the client closes the connection in order, or at shutdown. If the connection
 * breaks before that, they are rolled back.
 */
export class Settlements {
  readonly #graceMs: number
  readonly #failed: (error: unknown) => void
  /**
   * The pending settlements of each open connection that ever got such an answer. Entries stay until the connection
   * closes: adding and deleting one for each answer is costly ({@link OrderedSet}).
   */
  readonly #waiting = new Map<HttpConnection, PendingSettlement[]>()
  readonly #running = new InFlight()
  #size = 0
  #closing = false

  constructor(graceMs: number, failed: (error: unknown) => void) {
    this.#graceMs = graceMs
    this.#failed = failed
  }

  /** The number of answers that wait for their settlement. */
  get size(): number {
    return this.#size
  }

  /**
   * Writes the last part of a response that carries leased messages, ends the response, and settles the messages
   * later. The head must be written already.
   */
  deliver(response: HttpResponse, lastChunk: string | Uint8Array, settlement: Settlement): void {
    this.begin(response, settlement)?.deliver(lastChunk)
  }

  /**
   * Takes over the messages of a response that is written in parts. They are rolled back if the response is not
   * complete when the connection or the server ends.
   */
  begin(response: HttpResponse, settlement: Settlement): UndeliveredAnswer | undefined {
    const { socket } = response
    if (socket === null || response.destroyed) {
      this.settle(settlement, 'rollback')
      return undefined
    }
    let isComplete = false
    const pending: PendingSettlement = {
      handedOver: false,
      timer: undefined,
      done: (how) => {
        clearTimeout(pending.timer)
        const at = ofSocket.indexOf(pending)
        if (at === -1) return
        ofSocket.splice(at, 1)
        this.#size--
        if (socket.single === true) this.#waiting.delete(socket)
        this.settle(settlement, how)
        if (!isComplete) response.destroy()
        else if (!response.writableEnded) response.end()
      },
    }
    const onHandedOver = (): void => {
      pending.handedOver = true
      if (this.#graceMs === 0 || this.#closing) pending.done('commit')
      // Not unref'd: if the process exited within these 250 ms, the message would be delivered twice.
      else pending.timer = setTimeout(() => pending.done('commit'), this.#graceMs)
    }
    const ofSocket = this.#waitingOn(socket)
    ofSocket.push(pending)
    this.#size++
    const deliver = (lastChunk: string | Uint8Array): void => {
      isComplete = true
      if (response.shouldKeepAlive) {
        // Not the callback of `end`, which also runs for an aborted response.
        response.once('finish', onHandedOver)
        response.end(lastChunk)
      } else {
        // Ending the response would close the socket, and a reset of the client could no longer be detected.
        response.write(lastChunk, (error) => {
          if (!error) onHandedOver()
        })
      }
    }
    return { deliver, abandon: () => pending.done('rollback') }
  }

  #waitingOn(socket: HttpConnection): PendingSettlement[] {
    const known = this.#waiting.get(socket)
    if (known !== undefined) return known
    const ofSocket: PendingSettlement[] = []
    this.#waiting.set(socket, ofSocket)
    socket.once('close', (hadError: boolean) => {
      this.#waiting.delete(socket)
      for (const pending of ofSocket.slice()) pending.done(pending.handedOver && !hadError ? 'commit' : 'rollback')
    })
    return ofSocket
  }

  /** Commits the answers before this request on the same connection: its client has read them. */
  nextRequest(socket: HttpConnection): void {
    const ofSocket = this.#waiting.get(socket)
    if (ofSocket === undefined) return
    for (const pending of ofSocket.slice()) {
      if (pending.handedOver) pending.done('commit')
    }
  }

  /** Starts a settlement now; {@link close} waits for it. */
  settle(settlement: Settlement, how: 'commit' | 'rollback'): void {
    this.#running.begin()
    const settled = how === 'commit' ? settlement.commit() : settlement.rollback()
    void settled.catch(this.#failed).finally(() => this.#running.finish())
  }

  /**
   * Commits every answer that the operating system has accepted, and waits for the others. Rolls back those that are
   * not written within `graceMs` milliseconds.
   */
  async close(graceMs: number): Promise<void> {
    this.#closing = true
    const deadline = Date.now() + graceMs
    for (const pending of this.#all()) if (pending.handedOver) pending.done('commit')
    while (this.#size > 0 && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    for (const pending of this.#all()) pending.done('rollback')
    await this.#running.idle()
  }

  #all(): readonly PendingSettlement[] {
    return [...this.#waiting.values()].flat()
  }
}

/** The messages of a response that is not complete yet. */
export interface UndeliveredAnswer {
  /** Writes the last part of the response, as {@link Settlements.deliver} does. */
  deliver(lastChunk: string | Uint8Array): void
  /** Rolls the messages back, and breaks the connection. */
  abandon(): void
}

interface PendingSettlement {
  /** `true` after the operating system accepted the whole response. */
  handedOver: boolean
  timer: NodeJS.Timeout | undefined
  done(how: 'commit' | 'rollback'): void
}

/**
 * Lease of the messages in a destructive read, in ms. Answering and settling takes well under a second; the rest is
 * for an overloaded server. Messages whose lease ends first are delivered again.
 */
export const ANSWER_LEASE_MS = 90_000

/**
 * Leases messages for an answer. If the signal is aborted while messages arrive, they are rejected (nack) and keep
 * their positions.
 * @throws the signal's reason when it is aborted; BrokerError
 */
export async function leaseForAnswer(
  queues: Queues,
  channel: string,
  input: QueueReceiveInput & { readonly signal: AbortSignal },
): Promise<readonly QueueDelivery[]> {
  const deliveries = await queues.receive(channel, input)
  if (!input.signal.aborted) return deliveries
  if (deliveries.length > 0) await queues.nack(receiptsOf(deliveries), { delayMs: 0 })
  throw input.signal.reason
}

/** Returns the settlement of the messages in the answer to a destructive read; `undefined` for no messages. */
export function settlementOf(queues: Queues, deliveries: readonly QueueDelivery[]): Settlement | undefined {
  if (deliveries.length === 0) return undefined
  const receipts = receiptsOf(deliveries)
  return {
    async commit() {
      await queues.ack(receipts)
    },
    async rollback() {
      await queues.nack(receipts, { delayMs: 0 })
    },
  }
}

function receiptsOf(deliveries: readonly QueueDelivery[]): string[] {
  return deliveries.map(({ receipt }) => receipt)
}
