import type { SettleResult } from '../engine/queue-engine.ts'
import type { Span, SpanLink, TraceContext } from './tracing.ts'
import { MAX_LINKS } from './tracing.ts'

/** The most deliveries whose spans are open. Further ones get none. */
const MAX_OPEN_LEASES = 10_000

/** The time between two looks for leases that have ended, in ms. */
const SWEEP_MS = 1_000

/** A delivery that is being processed. */
interface OpenLease {
  readonly span: Span
  readonly queue: string
  /** The end of the lease, in ms since the epoch. */
  until: number
}

/**
 * The spans of deliveries that receivers process, by receipt: from the lease to the settlement. They connect a sender
 * and a receiver, although the receiver asks for messages, and settles them, in separate requests.
 */
export class OpenLeases {
  readonly #open = new Map<string, OpenLease>()
  /** The error type of a span whose lease ended without a settlement on this node. */
  readonly #ended: string
  #sweep: NodeJS.Timeout | undefined

  /** @param leaseSurvivesNode `true` if another node may settle a delivery of this one */
  constructor(leaseSurvivesNode: boolean) {
    this.#ended = leaseSurvivesNode ? 'unknown' : 'lease_expired'
  }

  /** `true` if no further span can be opened. */
  get full(): boolean {
    return this.#open.size >= MAX_OPEN_LEASES
  }

  get size(): number {
    return this.#open.size
  }

  /** @param until The end of the lease, in ms since the epoch */
  add(receipt: string, span: Span, queue: string, until: number): void {
    this.#open.set(receipt, { span, queue, until })
    this.#sweep ??= setInterval(() => this.#endLapsed(), SWEEP_MS).unref()
  }

  /** Returns the one queue of the known receipts; undefined if there are several queues, or none is known. */
  queueOf(receipts: readonly string[]): string | undefined {
    const queues = new Set(receipts.flatMap((receipt) => this.#open.get(receipt)?.queue ?? []))
    const [queue] = queues
    return queues.size === 1 ? queue : undefined
  }

  /** Returns links to the spans of receipts. */
  links(receipts: readonly string[]): readonly SpanLink[] {
    const contexts = receipts
      .slice(0, MAX_LINKS)
      .map((receipt): TraceContext | undefined => this.#open.get(receipt)?.span.context)
    return contexts.flatMap((context) => (context === undefined ? [] : { context }))
  }

  /**
   * Ends the spans of settled deliveries.
   * @param failure The reason why a delivery was rejected. @default it was acknowledged
   */
  settle(receipts: readonly string[], { lost }: SettleResult, failure?: string): void {
    for (const receipt of this.#known(receipts, lost)) {
      const { span } = this.#open.get(receipt) ?? {}
      this.#open.delete(receipt)
      if (failure !== undefined) span?.fail(failure, false)
      span?.end()
    }
    this.#rest()
  }

  /** @param until The new end of the leases, in ms since the epoch */
  extend(receipts: readonly string[], { lost }: SettleResult, until: number): void {
    for (const receipt of this.#known(receipts, lost)) {
      const lease = this.#open.get(receipt)
      if (lease !== undefined) lease.until = until
    }
  }

  #known(receipts: readonly string[], lost: readonly string[]): readonly string[] {
    if (this.#open.size === 0) return []
    const missing = new Set(lost)
    return receipts.filter((receipt) => this.#open.has(receipt) && !missing.has(receipt))
  }

  #endLapsed(): void {
    const now = Date.now()
    for (const [receipt, { span, until }] of this.#open) {
      if (until > now) continue
      this.#open.delete(receipt)
      span.fail(this.#ended)
      span.end(until)
    }
    this.#rest()
  }

  #rest(): void {
    if (this.#open.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
  }
}
