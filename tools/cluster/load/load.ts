import { setTimeout as pause } from 'node:timers/promises'

import type { RecoveryWatch } from '../recovery-watch.ts'
import type { Spells } from '../spells.ts'
import type { Ledger } from './ledger.ts'
import { Refused } from './calls.ts'

/** The load's view of the run. */
export interface Scene {
  /** The balancer's address. */
  readonly front: string
  readonly watch: RecoveryWatch
  /** The times in which a node was frozen: a client of that node then waits for the disaster, not for the broker. */
  readonly frozenNodes: Spells
  /** The times in which a nats-server was killed or frozen. */
  readonly struckServers: Spells
  /** The factor by which the pauses of the clients are longer. @default 1 */
  readonly pace?: number | undefined
}

/** One or several related kinds of load, with their ledgers. */
export interface Load {
  readonly ledgers: readonly Ledger[]
  /** Starts the clients. */
  start(): Promise<void>
  /** Runs once through the node at this address; rejects on failure. */
  probe(node: string): Promise<void>
  /** Stops all clients. */
  stop(): Promise<void>
  /** Waits for outstanding messages and closes the ledgers. `nodes` are the addresses of all nodes. */
  settle(nodes: readonly string[]): Promise<void>
}

/** The time-out of a client, in milliseconds; the broker answers earlier. */
export const CALL_MS = 10_000
/**
 * The time after which a client with independent calls starts a concurrent one, in milliseconds: new users keep
 * arriving.
 */
const BESIDE_MS = 1_000
const MAX_BESIDE = 10
/** The pause after a failure, in milliseconds. */
const RETRY_MS = 100
/** The allowed excess over the time-out of an answer, for a busy machine, in milliseconds. */
const LATE_MS = 5_000
const UNCLEAR = /\binternal\b|^no code\b|^HTTP \d/i

/** Pace and limits of the calls of a client. */
export interface ClientOptions {
  /** The pause between two calls, in milliseconds. */
  readonly pauseMs: number
  /** The time within which there must be an answer or a closed connection, in milliseconds. @default not checked */
  readonly boundMs?: number
  /** True if each call waits for the previous one, without a limit. @default false */
  readonly patient?: boolean
}

/** Clients that each repeat a call and keep the ledger. */
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

  /** Repeats the step until the clients are stopped; it is not a client, and not in the ledger. */
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
      await pause(done ? options.pauseMs * (this.#scene.pace ?? 1) : RETRY_MS)
    }
  }

  /** Runs one call and records it in the ledger. Resolves with `true` if it succeeded. */
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

  /** Records a broken promise if the silence exceeded the bound, not counting the time in which a node was frozen. */
  checkBound(what: string, since: number, boundMs: number): void {
    const now = performance.now()
    const silentMs = now - since - this.#scene.frozenNodes.overlapMs(since, now)
    if (silentMs > boundMs + LATE_MS) {
      this.#ledger.break('hung', `${what}: silent for ${Math.round(silentMs)} ms, ${boundMs} are allowed`)
    }
  }

  async stop(): Promise<void> {
    this.#stopped.abort()
    await Promise.all(this.#running)
  }
}
