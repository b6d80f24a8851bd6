import type { MeasuredProcess } from '../harness/measured-process.ts'
import type { Sample } from '../harness/prometheus.ts'
import type { ServerKind } from './server-kind.ts'
import type { Identity } from './caller.ts'
import { Caller } from './caller.ts'
import type { Identities } from './identities.ts'
import { Tally } from './tally.ts'
import { metricsOf, valueOf } from './watch.ts'

export interface SceneOptions {
  readonly kind: ServerKind
  readonly http: string
  readonly api: string
  readonly process: MeasuredProcess
  readonly identities: Identities
  readonly quick: boolean
}

/** A server under attack, and who is there. */
export class Scene {
  readonly kind: ServerKind
  readonly http: string
  readonly api: string
  readonly process: MeasuredProcess
  readonly tally = new Tally()
  readonly operator: Caller
  readonly #identities: Identities
  readonly #quick: boolean
  readonly #callers = new Map<string, Caller>()
  readonly #held = new DisposableStack()

  constructor({ kind, http, api, process, identities, quick }: SceneOptions) {
    this.kind = kind
    this.http = http
    this.api = api
    this.process = process
    this.#identities = identities
    this.#quick = quick
    this.operator = new Caller(http, api, identities.operator)
  }

  /** One of the attackers: each is a caller of its own to the limits. */
  attacker(index = 0): Caller {
    return this.#caller(this.#identities.attacker(index))
  }

  /** An attacker with a valid token and no right at all. */
  get nobody(): Caller {
    return this.#caller(this.#identities.nobody)
  }

  /** An attacker without a token. */
  get stranger(): Caller {
    return this.#caller(this.#identities.stranger)
  }

  /** An attacker who may look at the management listener. */
  get viewer(): Caller {
    return this.#caller(this.#identities.viewer)
  }

  get guarded(): boolean {
    return this.kind === 'guarded'
  }

  /** A count, or a smaller one where the run is a quick one. */
  scaled(full: number, quick: number): number {
    return this.#quick ? quick : full
  }

  /** How long a flood lasts, in milliseconds. */
  get floodMs(): number {
    return this.scaled(5_000, 1_000)
  }

  /** Keeps something until the attack is over. */
  use<T extends Disposable>(held: T): T {
    return this.#held.use(held)
  }

  metrics(): Promise<readonly Sample[]> {
    return metricsOf(this.operator)
  }

  async metric(name: string, label?: string): Promise<number> {
    return valueOf(await this.metrics(), name, label)
  }

  /** A limit of the process, as the server says it is. */
  processLimit(limit: string): Promise<number> {
    return this.metric('broker_limit_max', `limit="${limit}"`)
  }

  /** What one attacker may have where that is half of the process's, and a ClientID has a limit of its own. */
  async callerLimit(limit: string, ofClientId: number): Promise<number> {
    return this.guarded ? ofClientId : Math.floor((await this.processLimit(limit)) / 2)
  }

  /** Waits until this holds, for at most a minute. */
  async until(holds: () => Promise<boolean>): Promise<void> {
    for (const end = performance.now() + 60_000; !this.process.exited && performance.now() < end;) {
      if (await holds()) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  /** Breaks off everything that attackers hold. */
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
