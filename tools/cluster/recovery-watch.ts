/** The recovery of one kind of load after a disaster, in milliseconds. */
export interface Recovery {
  /** The longest time since the start of the disaster in which no client of the kind succeeded. */
  readonly outageMs: number
  /** From the disaster's end until every client of the kind had succeeded with a call begun after it. */
  readonly everyoneMs: number
}

interface Round {
  readonly startedAt: number
  endedAt: number
  readonly lastSuccess: Map<string, number>
  readonly outages: Map<string, number>
  readonly waitedFor: Map<string, Set<string>>
  readonly everyone: Map<string, number>
  changed: PromiseWithResolvers<void>
}

/** Observes every success of the load, and measures the time until all clients succeed again. */
export class RecoveryWatch {
  readonly #clients = new Map<string, Set<string>>()
  #round: Round | undefined

  /** Every client of a kind registers before its first call. */
  join(kind: string, client: string): void {
    const clients = this.#clients.get(kind) ?? new Set()
    this.#clients.set(kind, clients.add(client))
  }

  /** `begunAt` is the start of the call that has now succeeded. */
  succeeded(kind: string, client: string, begunAt: number): void {
    const round = this.#round
    if (round === undefined) return
    const now = performance.now()
    const silent = now - (round.lastSuccess.get(kind) ?? round.startedAt)
    round.lastSuccess.set(kind, now)
    round.outages.set(kind, Math.max(silent, round.outages.get(kind) ?? 0))
    const waitedFor = round.waitedFor.get(kind)
    if (begunAt < round.endedAt || waitedFor?.delete(client) !== true || waitedFor.size > 0) return
    round.everyone.set(kind, now - round.endedAt)
    round.changed.resolve()
  }

  /** Starts a disaster. */
  begin(): void {
    this.#round = {
      startedAt: performance.now(),
      endedAt: Number.POSITIVE_INFINITY,
      lastSuccess: new Map(),
      outages: new Map(),
      waitedFor: new Map([...this.#clients].map(([kind, clients]) => [kind, new Set(clients)])),
      everyone: new Map(),
      changed: Promise.withResolvers(),
    }
  }

  /** Ends the disaster: killed processes are starting, frozen ones run. */
  end(): void {
    if (this.#round !== undefined) this.#round.endedAt = performance.now()
  }

  /**
   * Resolves when every client has succeeded again, or the time is over. `missing` lists the clients that have not
   * recovered.
   */
  async recovered(milliseconds: number): Promise<{ recoveries: Map<string, Recovery>; missing: readonly string[] }> {
    const round = this.#round
    if (round === undefined) throw new Error('begin() comes first')
    const late = AbortSignal.timeout(milliseconds)
    const over = new Promise<void>((resolve) => late.addEventListener('abort', () => resolve(), { once: true }))
    while (round.everyone.size < round.waitedFor.size && !late.aborted) {
      round.changed = Promise.withResolvers()
      await Promise.race([round.changed.promise, over])
    }
    this.#round = undefined
    const recoveries = new Map<string, Recovery>()
    for (const [kind, everyoneMs] of round.everyone) {
      recoveries.set(kind, { everyoneMs, outageMs: round.outages.get(kind) ?? 0 })
    }
    const missing = [...round.waitedFor].flatMap(([kind, clients]) => [...clients].map((client) => `${kind} ${client}`))
    return { recoveries, missing }
  }
}
