import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import type { ToolOutcome } from './tools/tool.ts'

export type Settlement = NonNullable<ToolOutcome['settlement']>

/**
 * Settles messages late (M14). That a response was handed to the socket proves nothing: the reset of a client that was
 * killed arrives some 100 ms after it. So the messages in a response are settled a little later, at once when the next
 * request comes on the connection (its client has read the answer), when the client closes the connection in order, or
 * at shutdown; a connection that breaks before that gives them back.
 */
export class Settlements {
  readonly #graceMs: number
  readonly #failed: (error: unknown) => void
  readonly #waiting = new Map<Socket, Set<PendingSettlement>>()
  readonly #running = new Set<Promise<void>>()
  #closing = false

  constructor(graceMs: number, failed: (error: unknown) => void) {
    this.#graceMs = graceMs
    this.#failed = failed
  }

  /** How many answers wait for their settlement. */
  get size(): number {
    return this.#waiting.size
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
        socket.off('close', onClose)
        const ofSocket = this.#waiting.get(socket)
        if (!ofSocket?.delete(pending)) return
        if (ofSocket.size === 0) this.#waiting.delete(socket)
        this.settle(settlement, how)
        if (!response.writableEnded) response.end()
      },
    }
    const onClose = (hadError: boolean): void => pending.done(pending.handedOver && !hadError ? 'commit' : 'rollback')
    const onHandedOver = (): void => {
      pending.handedOver = true
      if (this.#graceMs === 0 || this.#closing) pending.done('commit')
      // Not unref'd: what holds the process for 250 ms is a message that would otherwise be delivered twice.
      else pending.timer = setTimeout(() => pending.done('commit'), this.#graceMs)
    }
    let ofSocket = this.#waiting.get(socket)
    if (ofSocket === undefined) this.#waiting.set(socket, (ofSocket = new Set()))
    ofSocket.add(pending)
    socket.on('close', onClose)
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

  /** A request came on this connection: its client has read the answers before it. */
  nextRequest(socket: Socket): void {
    const ofSocket = this.#waiting.get(socket)
    if (ofSocket === undefined) return
    for (const pending of ofSocket) {
      if (pending.handedOver) pending.done('commit')
    }
  }

  /** Starts a settlement now; {@link close} waits for it. */
  settle(settlement: Settlement, how: 'commit' | 'rollback'): void {
    const run = (how === 'commit' ? settlement.commit() : settlement.rollback())
      .catch(this.#failed)
      .finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  /**
   * Settles everything: at once what was handed over, the rest as soon as it is. What has not been within `graceMs`
   * goes back.
   */
  async close(graceMs: number): Promise<void> {
    this.#closing = true
    const deadline = Date.now() + graceMs
    for (const pending of this.#all()) if (pending.handedOver) pending.done('commit')
    while (this.#waiting.size > 0 && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    for (const pending of this.#all()) pending.done('rollback')
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  #all(): readonly PendingSettlement[] {
    return [...this.#waiting.values()].flatMap((ofSocket) => Array.from(ofSocket))
  }
}

interface PendingSettlement {
  /** The whole response is with the operating system. */
  handedOver: boolean
  timer: NodeJS.Timeout | undefined
  done(how: 'commit' | 'rollback'): void
}
