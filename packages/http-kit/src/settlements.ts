import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import { InFlight } from './in-flight.ts'

/** What becomes of the leased messages in an answer: removed for good, or given back. */
export interface Settlement {
  commit(): Promise<void>
  rollback(): Promise<void>
}

/**
 * Settles messages late (M14). That a response was handed to the socket proves nothing: the reset of a client that was
 * killed arrives some 100 ms after it. So the messages in a response are settled a little later, at once when the next
 * request comes on the connection (its client has read the answer), when the client closes the connection in order, or
 * at shutdown; a connection that breaks before that gives them back.
 */
export class Settlements {
  readonly #graceMs: number
  readonly #failed: (error: unknown) => void
  /** For each open connection that ever got such an answer: entries that came and went with answers would be costly ({@link OrderedSet}). */
  readonly #waiting = new Map<Socket, PendingSettlement[]>()
  readonly #running = new InFlight()
  #size = 0
  #closing = false

  constructor(graceMs: number, failed: (error: unknown) => void) {
    this.#graceMs = graceMs
    this.#failed = failed
  }

  /** How many answers wait for their settlement. */
  get size(): number {
    return this.#size
  }

  /**
   * Writes the last piece of a response that carries leased messages, ends it, and settles them in time. The head was
   * written before.
   */
  deliver(response: ServerResponse, lastChunk: string, settlement: Settlement): void {
    const { socket } = response
    if (socket === null || response.destroyed) {
      this.settle(settlement, 'rollback')
      return
    }
    const pending: PendingSettlement = {
      handedOver: false,
      timer: undefined,
      done: (how) => {
        clearTimeout(pending.timer)
        const at = ofSocket.indexOf(pending)
        if (at === -1) return
        ofSocket.splice(at, 1)
        this.#size--
        this.settle(settlement, how)
        if (!response.writableEnded) response.end()
      },
    }
    const onHandedOver = (): void => {
      pending.handedOver = true
      if (this.#graceMs === 0 || this.#closing) pending.done('commit')
      // Not unref'd: what holds the process for 250 ms is a message that would otherwise be delivered twice.
      else pending.timer = setTimeout(() => pending.done('commit'), this.#graceMs)
    }
    const ofSocket = this.#waitingOn(socket)
    ofSocket.push(pending)
    this.#size++
    if (response.shouldKeepAlive) {
      // Not the callback of `end`: that comes for a response that broke off as well.
      response.once('finish', onHandedOver)
      response.end(lastChunk)
    } else {
      // Ending the response would close the socket, and with it our only way to hear that the client is dead.
      response.write(lastChunk, (error) => {
        if (!error) onHandedOver()
      })
    }
  }

  #waitingOn(socket: Socket): PendingSettlement[] {
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

  /** A request came on this connection: its client has read the answers before it. */
  nextRequest(socket: Socket): void {
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
   * Settles everything: at once what was handed over, the rest as soon as it is. What has not been within `graceMs`
   * goes back.
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

interface PendingSettlement {
  /** The whole response is with the operating system. */
  handedOver: boolean
  timer: NodeJS.Timeout | undefined
  done(how: 'commit' | 'rollback'): void
}
