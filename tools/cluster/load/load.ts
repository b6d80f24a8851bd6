import { setTimeout as pause } from 'node:timers/promises'

import type { RecoveryWatch } from '../recovery-watch.ts'
import type { Spells } from '../spells.ts'
import type { Ledger } from './ledger.ts'
import { Refused } from './calls.ts'

/** What the load knows of the run. */
export interface Scene {
  /** The balancer's address. */
  readonly front: string
  readonly watch: RecoveryWatch
  /** When a node was frozen: who waits for it then waits for the disaster, not for the broker. */
  readonly frozenNodes: Spells
  /** When a nats-server was killed or frozen. */
  readonly struckServers: Spells
}

/** One kind of load, or some that belong together, with their ledgers. */
export interface Load {
  readonly ledgers: readonly Ledger[]
  /** Begins. */
  start(): Promise<void>
  /** Once through the node at this address; rejects when that does not go. */
  probe(node: string): Promise<void>
  /** Ends all clients. */
  stop(): Promise<void>
  /** Waits for what is still to come, and closes the ledgers. `nodes` are the addresses of all nodes. */
  settle(nodes: readonly string[]): Promise<void>
}

/** A client that gives a call up after so long, in milliseconds; the broker answers before. */
export const CALL_MS = 10_000
/** A client that need not wait for its call begins another beside it after this long, in milliseconds: users keep coming. */
const BESIDE_MS = 1_000
const MAX_BESIDE = 10
/** A failed client tries again after this long, in milliseconds. */
const RETRY_MS = 100
/** How much later than its time-out an answer may come on a busy machine, in milliseconds. */
const LATE_MS = 5_000
const UNCLEAR = /\binternal\b|^no code\b|^HTTP \d/i

/** How a client goes about its calls. */
export interface ClientOptions {
  /** Between a call and the next, in milliseconds. */
  readonly pauseMs: number
  /** How soon there must be an answer or a closed connection, in milliseconds. @default not checked */
  readonly boundMs?: number
  /** Each call waits for the one before, however long that takes. @default false */
  readonly patient?: boolean
}

/** Clients that repeat a call each, and keep the ledger. */
export class Clients {
  readonly #ledger: Ledger
  readonly #scene: Scene
  readonly #stopped = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  constructor(ledger: Ledger, scene: Scene) {
    this.#ledger = ledger
    this.#scene = scene
  }

  add(name: string, options: ClientOptions, call: () => Promise<void>): void {
    this.#scene.watch.join(this.#ledger.kind, name)
    this.#run(this.#repeat(name, options, call))
  }

  /** Runs again and again until the clients are stopped; no client, and not in the ledger. */
  beside(step: () => Promise<void>): void {
    const repeat = async (): Promise<void> => {
      while (!this.stopped.aborted) await step().catch(() => pause(RETRY_MS))
    }
    this.#run(repeat())
  }

  get stopped(): AbortSignal {
    return this.#stopped.signal
  }

  #run(work: Promise<unknown>): void {
    this.#running.add(work)
    void work.finally(() => this.#running.delete(work))
  }

  async #repeat(name: string, options: ClientOptions, call: () => Promise<void>): Promise<void> {
    let under = 0
    while (!this.stopped.aborted) {
      under++
      const calling = this.once(name, call, options.boundMs).finally(() => under--)
      this.#run(calling)
      const patient = options.patient === true || under >= MAX_BESIDE
      const done = await (patient ? calling : Promise.race([calling, pause(BESIDE_MS, true, { ref: false })]))
      await pause(done ? options.pauseMs : RETRY_MS)
    }
  }

  /** One call in the ledger. Resolves with whether it succeeded. */
  async once(name: string, call: () => Promise<void>, boundMs?: number): Promise<boolean> {
    const ledger = this.#ledger
    const begunAt = performance.now()
    ledger.attempted++
    let done = false
    try {
      await call()
      ledger.acknowledged++
      done = true
      this.#scene.watch.succeeded(ledger.kind, name, begunAt)
    } catch (error) {
      if (!(error instanceof Refused)) ledger.unknown++
      else {
        ledger.refuse(error.code)
        if (UNCLEAR.test(error.message)) ledger.break('unclear', error.message)
      }
    }
    if (boundMs !== undefined) this.checkBound(name, begunAt, boundMs)
    return done
  }

  /** Breaks the ledger's word if nothing came for longer than the bound, the time in which a node was frozen apart. */
  checkBound(what: string, since: number, boundMs: number): void {
    const now = performance.now()
    const silentMs = now - since - this.#scene.frozenNodes.overlapMs(since, now)
    if (silentMs > boundMs + LATE_MS) {
      this.#ledger.break('hung', `${what}: nothing for ${Math.round(silentMs)} ms, ${boundMs} are allowed`)
    }
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await Promise.all(this.#running)
  }
}
