import type { MeasuredProcess } from '../harness/measured-process.ts'
import type { Sample } from '../harness/prometheus.ts'
import type { EngineName, ServerKind } from './server-kind.ts'
import type { Answer, Identity } from './caller.ts'
import { Caller } from './caller.ts'
import type { Identities } from './identities.ts'
import { Tally } from './tally.ts'
import { metricsOf, valueOf } from './watch.ts'

/** The CPU time that a single request may take in one tick of the event loop, in milliseconds. */
const MOST_SINGLE_MS = 50

export interface SceneOptions {
  readonly engine: EngineName
  readonly kind: ServerKind
  readonly http: string
  readonly api: string
  readonly process: MeasuredProcess
  readonly identities: Identities
  readonly quick: boolean
}

/** A server under attack, with its attackers and other callers. */
export class Scene {
  readonly engine: EngineName
  readonly kind: ServerKind
  readonly http: string
  readonly api: string
  readonly process: MeasuredProcess
  readonly tally = new Tally()
  /** The times that were too long. */
  readonly late: string[] = []
  readonly operator: Caller
  readonly #identities: Identities
  readonly #quick: boolean
  readonly #callers = new Map<string, Caller>()
  readonly #held = new DisposableStack()

  constructor({ engine, kind, http, api, process, identities, quick }: SceneOptions) {
    this.engine = engine
    this.kind = kind
    this.http = http
    this.api = api
    this.process = process
    this.#identities = identities
    this.#quick = quick
    this.operator = new Caller(http, api, identities.operator)
  }

  /** Returns one of the attackers: the limits count each as a separate caller. */
  attacker(index = 0): Caller {
    return this.#caller(this.#identities.attacker(index))
  }

  /** Returns an attacker with a valid token and no permission. */
  get nobody(): Caller {
    return this.#caller(this.#identities.nobody)
  }

  /** Returns an attacker without a token. */
  get stranger(): Caller {
    return this.#caller(this.#identities.stranger)
  }

  /** Returns an attacker with read permission on the management listener. */
  get viewer(): Caller {
    return this.#caller(this.#identities.viewer)
  }

  get guarded(): boolean {
    return this.kind === 'guarded'
  }

  /** Returns a count, or a smaller one in a quick run. */
  scaled(full: number, quick: number): number {
    return this.#quick ? quick : full
  }

  /** Duration of a flood, in milliseconds. */
  get floodMs(): number {
    return this.scaled(5_000, 1_000)
  }

  /** Keeps a resource until the end of the attack. */
  use<T extends Disposable>(held: T): T {
    return this.#held.use(held)
  }

  metrics(): Promise<readonly Sample[]> {
    return metricsOf(this.operator)
  }

  async metric(name: string, label?: string): Promise<number> {
    return valueOf(await this.metrics(), name, label)
  }

  /** Returns a limit of the process, as the server reports it. */
  processLimit(limit: string): Promise<number> {
    return this.metric('broker_limit_max', `limit="${limit}"`)
  }

  /** Returns the share of one attacker for a limit of which an address has half and a ClientID has a separate limit. */
  async callerLimit(limit: string, ofClientId: number): Promise<number> {
    return this.guarded ? ofClientId : Math.floor((await this.processLimit(limit)) / 2)
  }

  /**
   * Sends one request while the attackers send no other, and records the time if a tick of the event loop takes more
   * CPU time than `mostMs` until its answer. A request that takes too long is sent once more: other work may have
   * joined its tick.
   */
  async single(name: string, request: () => Promise<Answer>, mostMs = MOST_SINGLE_MS): Promise<Answer | undefined> {
    let best = Number.POSITIVE_INFINITY
    let answer: Answer | undefined
    for (let attempt = 0; attempt < 2 && best > mostMs; attempt++) {
      await this.process.call('longestTurn', 'single')
      answer = await this.tally.of(request())
      best = Math.min(best, await this.process.call<number>('longestTurn', 'single'))
    }
    if (best > mostMs) this.late.push(`${name}: a tick took ${best.toFixed(0)} ms of CPU, and ${mostMs} are allowed`)
    return answer
  }

  /** Waits until the condition holds, for at most a minute. */
  async until(holds: () => Promise<boolean>): Promise<void> {
    for (const end = performance.now() + 60_000; !this.process.exited && performance.now() < end;) {
      if (await holds()) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  /** Closes everything that attackers hold. */
  release(): void {
    for (const caller of this.#callers.values()) caller[Symbol.dispose]()
    this.#held.dispose()
  }

  #caller(identity: Identity): Caller {
    const known = this.#callers.get(identity.name)
    if (known !== undefined) return known
    const caller = new Caller(this.http, this.api, identity)
    this.#callers.set(identity.name, caller)
    return caller
  }
}
