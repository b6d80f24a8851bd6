import type { Delivery } from './delivery.ts'

/**
 * The time for which a delivery without a receiver is kept for the next receiver on this node, in
 * milliseconds.
 */
const STASH_MS = 100

/** A receiver that waits for messages. It may receive one that another receiver's request brought. */
export class WaitingReceiver {
  #handed: Delivery | undefined
  #arrival = Promise.withResolvers<void>()

  get waits(): boolean {
    return this.#handed === undefined
  }

  /** Resolves when a message has been passed to it. */
  get arrival(): Promise<void> {
    return this.#arrival.promise
  }

  hand(delivery: Delivery): void {
    this.#handed = delivery
    this.#arrival.resolve()
  }

  /** Returns the message that was passed to it, if any. From then on it waits again. */
  take(): readonly Delivery[] {
    const handed = this.#handed
    if (handed === undefined) return []
    this.#handed = undefined
    this.#arrival = Promise.withResolvers()
    return [handed]
  }
}

/**
 * The receivers of one queue on this node, in order, and for a short time the deliveries without a receiver.
 */
export class WaitingLine {
  readonly #giveBack: (delivery: Delivery) => Promise<void>
  readonly #background: (work: Promise<void>) => void
  readonly #receivers = new Set<WaitingReceiver>()
  readonly #stash: Delivery[] = []
  #stashTimer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(giveBack: (delivery: Delivery) => Promise<void>, background: (work: Promise<void>) => void) {
    this.#giveBack = giveBack
    this.#background = background
  }

  /** Adds a receiver at the end; a receiver that is in the line keeps its place. */
  join(receiver: WaitingReceiver): void {
    this.#receivers.add(receiver)
  }

  /** Removes a receiver, and offers the message that it did not receive to others. */
  leave(receiver: WaitingReceiver): void {
    this.#receivers.delete(receiver)
    for (const delivery of receiver.take()) this.offer(delivery)
  }

  /** Passes a delivery to the receiver that waits longest. Without one, keeps it for a short time. */
  offer(delivery: Delivery): void {
    if (!this.#isClosed) {
      for (const receiver of this.#receivers) {
        if (receiver.waits) return receiver.hand(delivery)
      }
    }
    this.#stash.push(delivery)
    this.#stash.sort((a, b) => a.sequence - b.sequence)
    this.#stashTimer ??= setTimeout(() => this.#background(this.returnStash()), STASH_MS).unref()
  }

  takeStash(): readonly Delivery[] {
    return this.#stash.splice(0)
  }

  /** Returns the deliveries without a receiver to the servers. */
  async returnStash(): Promise<void> {
    clearTimeout(this.#stashTimer)
    this.#stashTimer = undefined
    await Promise.all(this.#stash.splice(0).map((delivery) => this.#giveBack(delivery)))
  }

  /** Stops passing deliveries to receivers. */
  close(): void {
    this.#isClosed = true
  }

  /** Drops all deliveries of a deleted queue. */
  drop(): void {
    this.close()
    clearTimeout(this.#stashTimer)
    this.#stash.length = 0
  }
}
