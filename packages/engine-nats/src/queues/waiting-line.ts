import type { Delivery } from './delivery.ts'

/** How long what came without anybody waiting is kept for the next one here, before other nodes may have it. */
const STASH_MS = 100

/** Somebody who waits for messages, and may be handed one that came by somebody else's request. */
export class WaitingReceiver {
  #handed: Delivery | undefined
  #arrival = Promise.withResolvers<void>()

  get waits(): boolean {
    return this.#handed === undefined
  }

  /** Resolves when it is handed a message. */
  get arrival(): Promise<void> {
    return this.#arrival.promise
  }

  hand(delivery: Delivery): void {
    this.#handed = delivery
    this.#arrival.resolve()
  }

  /** What it was handed, one at the most; it waits again from here on. */
  take(): readonly Delivery[] {
    const handed = this.#handed
    if (handed === undefined) return []
    this.#handed = undefined
    this.#arrival = Promise.withResolvers()
    return [handed]
  }
}

/** Who waits for messages of one queue on this node, and for a moment what nobody waited for. */
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

  /** At the end of the line; who stands in it keeps its place. */
  join(receiver: WaitingReceiver): void {
    this.#receivers.add(receiver)
  }

  /** What the receiver was handed and did not take is for others. */
  leave(receiver: WaitingReceiver): void {
    this.#receivers.delete(receiver)
    for (const delivery of receiver.take()) this.offer(delivery)
  }

  /** For whoever waits longest; kept for a moment when nobody does. */
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

  /** Gives back what nobody took. */
  async returnStash(): Promise<void> {
    clearTimeout(this.#stashTimer)
    this.#stashTimer = undefined
    await Promise.all(this.#stash.splice(0).map((delivery) => this.#giveBack(delivery)))
  }

  /** Nobody is handed anything any more. */
  close(): void {
    this.#isClosed = true
  }

  /** The queue is gone, and with it what was kept. */
  drop(): void {
    this.close()
    clearTimeout(this.#stashTimer)
    this.#stash.length = 0
  }
}
