import type { Engine } from '../engine/engine.ts'
import type { ReceiveOptions } from '../engine/queue-engine.ts'
import { MAX_TIMER_MS } from '../keyed-log/retry.ts'
import type { QueueDelivery } from '../message.ts'
import type { GateReason } from '../observer.ts'
import type { ConsumerSettings } from './channel-settings.ts'
import type { QueuePauses } from './queue-pauses.ts'

/** The consumer settings of a queue without limits. */
export const UNLIMITED: ConsumerSettings = { paused_until: null, max_per_second: 0, max_in_flight: 0 }

/**
 * Lets receivers lease messages of a queue only while it is not paused, and within its rate and its number of leased
 * messages. The others wait here, in the order of their calls. Only queues with such settings or a pause have a state.
 */
export class ConsumerGate {
  readonly #engine: Engine
  readonly #pauses: QueuePauses
  readonly #waited: (reason: GateReason) => void
  readonly #gates = new Map<string, QueueGate>()
  /** The number of changes of settings and pauses. */
  #changes = 0
  #lastPlace = 0
  #closed = false

  /** @param waited Called when a receiver has to wait, or gets nothing because it does not wait */
  constructor(engine: Engine, pauses: QueuePauses, waited: (reason: GateReason) => void) {
    this.#engine = engine
    this.#pauses = pauses
    this.#waited = waited
    engine.settings.onChange(() => {
      this.#changed((queue) => this.#gates.has(queue) || this.applies(queue), [...this.#gates.values()])
    })
    pauses.onChange((queue) => {
      const gate = this.#gates.get(queue)
      this.#changed((name) => name === queue, gate === undefined ? [] : [gate])
    })
    engine.queues.listen({
      leaseEnded: (queue) => {
        if (this.#gates.size > 0) this.#gates.get(queue)?.serve()
      },
      closed: () => {
        this.#closed = true
        for (const gate of this.#gates.values()) gate.serve()
      },
    })
  }

  /** Receivers that wait in the engine return, and pass the gate under the new rules. */
  #changed(concerns: (queue: string) => boolean, gates: readonly QueueGate[]): void {
    this.#changes++
    for (const gate of gates) gate.serve()
    this.#engine.queues.interrupt(concerns)
  }

  /** Returns whether receivers of the queue must pass the gate. */
  applies(queue: string): boolean {
    const { settings } = this.#engine
    if (settings.active && settings.of('queues', queue).consumers !== undefined) return true
    return this.#pauses.active && this.#pauses.of(queue) !== undefined
  }

  /** Returns the end of the pause of a queue, in ms since the epoch; `undefined` if it is not paused. */
  pausedUntil(queue: string): number | undefined {
    const { settings } = this.#engine
    const set = settings.active ? settings.of('queues', queue).consumers?.paused_until : undefined
    const own = this.#pauses.active ? this.#pauses.of(queue)?.until : undefined
    const until = Math.max(Date.parse(set ?? '') || 0, own ?? 0)
    return until > Date.now() ? until : undefined
  }

  /** Returns the number of queues that are paused. */
  async pausedQueues(): Promise<number> {
    const { channels, settings } = this.#engine
    const isPaused = settings.some('queues', ({ consumers }) => Date.parse(consumers?.paused_until ?? '') > Date.now())
    if (!isPaused && !this.#pauses.active) return 0
    const names = await channels.names('queues')
    return names.filter(({ name }) => this.pausedUntil(name) !== undefined).length
  }

  /**
   * Receives through the gate.
   * @param exempt `true` passes the gate at once
   */
  receive(queue: string, options: ReceiveOptions, exempt: boolean): Promise<readonly QueueDelivery[]> {
    const end = performance.now() + options.waitMs
    const place = ++this.#lastPlace
    // No async function: its frame would be kept in memory for each receiver that waits.
    const receive = (waitMs: number): Promise<readonly QueueDelivery[]> => {
      const changes = this.#changes
      const isGated = !exempt && !this.#closed && this.applies(queue)
      const received = isGated
        ? this.#gateOf(queue).receive({ ...options, waitMs }, place)
        : this.#engine.queues.receive(queue, waitMs === options.waitMs ? options : { ...options, waitMs })
      return received.then((deliveries) => {
        // A change of the rules ends the wait in the engine.
        if (deliveries.length > 0 || changes === this.#changes) return deliveries
        const leftMs = Math.floor(end - performance.now())
        return leftMs < 0 ? [] : receive(leftMs)
      })
    }
    return receive(options.waitMs)
  }

  #gateOf(queue: string): QueueGate {
    let gate = this.#gates.get(queue)
    if (gate === undefined) {
      gate = new QueueGate(this.#engine, queue, {
        limits: () => this.#limitsOf(queue),
        changes: () => this.#changes,
        waited: this.#waited,
        idle: (idle) => {
          if (this.#gates.get(queue) === idle) this.#gates.delete(queue)
        },
      })
      this.#gates.set(queue, gate)
    }
    return gate
  }

  /** Returns the limits for this node: its share, if leases of other nodes are not known exactly. */
  #limitsOf(queue: string): Limits {
    const { capabilities, settings } = this.#engine
    if (this.#closed) return { pausedMs: 0, perSecond: 0, inFlight: 0 }
    const { max_per_second: rate, max_in_flight: most } = settings.of('queues', queue).consumers ?? UNLIMITED
    const nodes = capabilities.exactConsumerLimits ? 1 : 1 + (this.#engine.otherNodes?.().length ?? 0)
    const pausedMs = (this.pausedUntil(queue) ?? 0) - Date.now()
    return { pausedMs, perSecond: rate / nodes, inFlight: Math.ceil(most / nodes) }
  }
}

/** The limits of a queue on this node at the moment. */
interface Limits {
  /** The time until the end of the pause, in ms; not above 0 without a pause. */
  readonly pausedMs: number
  /** 0 means unlimited. */
  readonly perSecond: number
  /** 0 means unlimited. */
  readonly inFlight: number
}

interface QueueGateContext {
  readonly limits: () => Limits
  /** Returns the number of changes of the rules. */
  readonly changes: () => number
  readonly waited: (reason: GateReason) => void
  /** Called when the gate has no state that matters any more. */
  readonly idle: (gate: QueueGate) => void
}

/** A receiver that waits at the gate. */
interface Waiter {
  readonly place: number
  readonly wanted: number
  isServed: boolean
  readonly resolve: (grant: Grant) => void
}

/** The end of a wait at the gate. */
interface Grant {
  /** The number of messages that the receiver may lease; 0 if its time is over. */
  readonly granted: number
  /** The number of changes of the rules until then. */
  readonly changes: number
}

/** The messages that a receiver may lease now, or the reason for which it waits. */
type Allowance =
  | { readonly count: number }
  | {
      readonly reason: GateReason
      /** The time after which that may change without an event, in ms. */
      readonly againMs: number
    }

/** The receivers of one queue with limits. */
class QueueGate {
  readonly #engine: Engine
  readonly #queue: string
  readonly #context: QueueGateContext
  /** By place. */
  readonly #waiting: Waiter[] = []
  readonly #bucket = new TokenBucket()
  /** The number of messages that receivers may lease, and have not leased yet. */
  #reserved = 0
  #timer: NodeJS.Timeout | undefined

  constructor(engine: Engine, queue: string, context: QueueGateContext) {
    this.#engine = engine
    this.#queue = queue
    this.#context = context
  }

  /** Waits for the gate, then for messages. The time for both is that of the options. */
  async receive(options: ReceiveOptions, place: number): Promise<readonly QueueDelivery[]> {
    const end = performance.now() + options.waitMs
    for (let { waitMs } = options; waitMs >= 0; waitMs = Math.floor(end - performance.now())) {
      const { granted, changes } = await this.#enter({ ...options, waitMs }, place)
      if (granted === 0) return []
      let leased = 0
      try {
        // A wait that begins after a change would not be interrupted by it.
        if (changes === this.#context.changes()) {
          const leftMs = waitMs === 0 ? 0 : Math.max(0, Math.ceil(end - performance.now()))
          const limited = { ...options, maxMessages: granted, waitMs: leftMs }
          const deliveries = await this.#engine.queues.receive(this.#queue, limited)
          leased = deliveries.length
          if (leased > 0 || changes === this.#context.changes()) return deliveries
        }
      } finally {
        this.#reserved -= granted
        this.#bucket.take(leased)
        // Later, so that a receiver that was interrupted takes its place first.
        queueMicrotask(() => this.serve())
      }
    }
    return []
  }

  async #enter({ maxMessages, signal, waitMs }: ReceiveOptions, place: number): Promise<Grant> {
    signal?.throwIfAborted()
    const { promise, resolve } = Promise.withResolvers<Grant>()
    const waiter: Waiter = { place, wanted: maxMessages, isServed: false, resolve }
    const before = this.#waiting.findLastIndex((other) => other.place < place)
    this.#waiting.splice(before + 1, 0, waiter)
    const blocked = this.serve()
    if (blocked === undefined || waiter.isServed) return promise
    this.#context.waited(blocked)
    const leave = (): void => {
      const at = this.#waiting.indexOf(waiter)
      if (at !== -1) this.#waiting.splice(at, 1)
      resolve({ granted: 0, changes: 0 })
      this.serve()
    }
    if (waitMs === 0) leave()
    // Not unref'd: a caller awaits it, and its time is bounded.
    const timer = setTimeout(leave, Math.min(waitMs, MAX_TIMER_MS))
    signal?.addEventListener('abort', leave)
    try {
      const grant = await promise
      if (signal?.aborted !== true) return grant
      this.#reserved -= grant.granted
      this.serve()
      throw signal.reason
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', leave)
    }
  }

  /** Lets receivers in as long as the limits allow it. Returns the reason for which the next one waits, if any. */
  serve(): GateReason | undefined {
    clearTimeout(this.#timer)
    const limits = this.#context.limits()
    const now = performance.now()
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const allowance = this.#allowance(first.wanted, limits, now)
      if ('reason' in allowance) {
        this.#serveAfter(allowance.againMs)
        return allowance.reason
      }
      this.#waiting.shift()
      this.#reserved += allowance.count
      first.isServed = true
      first.resolve({ granted: allowance.count, changes: this.#context.changes() })
    }
    if (this.#reserved > 0) return undefined
    const againMs = this.#bucket.msUntil(Infinity, limits.perSecond, now)
    if (againMs > 0) this.#serveAfter(againMs)
    else this.#context.idle(this)
    return undefined
  }

  #serveAfter(ms: number): void {
    if (ms === Infinity) return
    this.#timer = setTimeout(() => this.serve(), Math.min(Math.ceil(ms), MAX_TIMER_MS)).unref()
  }

  #allowance(wanted: number, { pausedMs, perSecond, inFlight }: Limits, now: number): Allowance {
    if (pausedMs > 0) return { reason: 'paused', againMs: pausedMs }
    const leased = inFlight === 0 ? 0 : this.#engine.queues.leased(this.#queue)
    const free = inFlight === 0 ? Infinity : inFlight - leased - this.#reserved
    if (free < 1) return { reason: 'in_flight', againMs: Infinity }
    const ready = this.#bucket.tokens(perSecond, now) - this.#reserved
    if (ready < 1) return { reason: 'rate', againMs: this.#bucket.msUntil(this.#reserved + 1, perSecond, now) }
    return { count: Math.min(wanted, free, Math.floor(ready)) }
  }
}

/** Rounding errors must not make a full token look like a part of one. */
const ROUNDING = 1e-6

/**
 * The deliveries that a rate allows. Holds at most those of one second, and at least one. Tokens that are reserved stay
 * in it until their messages are delivered, so that reservations do not make a longer burst.
 */
class TokenBucket {
  /** The tokens that are missing to a full bucket. */
  #missing = 0
  #at = 0

  /** Returns the number of tokens. @param perSecond 0 means unlimited */
  tokens(perSecond: number, now: number): number {
    const size = perSecond === 0 ? 0 : Math.max(1, perSecond)
    const refilled = ((now - this.#at) / 1000) * perSecond
    // The rate may have been higher before.
    this.#missing = Math.min(size, Math.max(0, this.#missing - refilled))
    this.#at = now
    return perSecond === 0 ? Infinity : size - this.#missing + ROUNDING
  }

  take(count: number): void {
    this.#missing += count
  }

  /** Returns the time until it has a number of tokens, or is full, in ms; Infinity if it cannot hold so many. */
  msUntil(count: number, perSecond: number, now: number): number {
    const tokens = this.tokens(perSecond, now)
    if (perSecond === 0) return 0
    const size = Math.max(1, perSecond)
    if (count !== Infinity && count > size + ROUNDING) return Infinity
    return Math.max(0, ((Math.min(count, size) - tokens) / perSecond) * 1000)
  }
}
