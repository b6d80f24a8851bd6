import type { MeasuredProcess } from '@signalbox/testkit/measured-process'
import type { Sample } from '@signalbox/testkit/prometheus'
import { parseSamples } from '@signalbox/testkit/prometheus'

import type { Answer, EngineName, HeldResponse, Identities, Identity, ServerKind } from './callers.ts'
import { Caller, failureOf, outcomeOf } from './callers.ts'

/** The attack itself. */
type Strike = () => Promise<void>

export interface Attack {
  readonly name: string
  readonly about: string
  /** The kinds of server that the attack runs against. @default all */
  readonly servers?: readonly ServerKind[]
  /** The engines that the attack runs against. @default all */
  readonly engines?: readonly EngineName[]
  /**
   * The CPU time that one tick of the event loop may take, in milliseconds. The default is for requests of many
   * connections; measure a single request with {@link Scene.single}. @default 100
   */
  readonly loopMs?: number
  /** Settings of the server, in addition to its kind's. */
  readonly settings?: Readonly<Record<string, string>>
  /** The number of files that the server may have open. @default this process's limit */
  readonly openFiles?: number
  /**
   * Prepares the attack, without measurement; returns the attack itself, which is measured. Everything that the attack
   * holds open at its end is closed afterwards.
   */
  prepare(scene: Scene): Strike | Promise<Strike>
}

/** The CPU time that a single request may take in one tick of the event loop, in milliseconds. */
const MOST_SINGLE_MS = 50

interface SceneOptions {
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

/** Counts the attacker's answers, by status and code, and collects the failed expectations. */
class Tally {
  readonly #counts = new Map<string, number>()
  readonly problems: string[] = []

  count(outcome: string, times = 1): void {
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + times)
  }

  /** Awaits an answer and counts it or its failure, after a prefix; resolves with it. */
  async of<T extends Pick<Answer, 'status' | 'text'>>(answer: Promise<T>, prefix = ''): Promise<T | undefined> {
    return this.#counted(answer, prefix, outcomeOf)
  }

  /** Awaits the head of a response and counts it as `stream` or by its status, or its failure; resolves with it. */
  async ofStream(stream: Promise<HeldResponse>): Promise<HeldResponse | undefined> {
    return this.#counted(stream, '', ({ isStream, status }) => (isStream ? 'stream' : String(status)))
  }

  async #counted<T>(work: Promise<T>, prefix: string, outcome: (result: T) => string): Promise<T | undefined> {
    try {
      const result = await work
      this.count(prefix + outcome(result))
      return result
    } catch (error) {
      this.count(prefix + failureOf(error))
      return undefined
    }
  }

  /** Records a problem if the condition is false. */
  expect(holds: boolean, otherwise: string): void {
    if (!holds) this.problems.push(otherwise)
  }

  /** Returns the number of outcomes that begin with the text. */
  countOf(beginning: string): number {
    let sum = 0
    for (const [outcome, times] of this.#counts) if (outcome.startsWith(beginning)) sum += times
    return sum
  }

  /** `200 ×3, 429 -32603 ×17`, the most frequent first. */
  toString(): string {
    const ordered = [...this.#counts].toSorted(([, a], [, b]) => b - a)
    return ordered.map(([outcome, times]) => `${outcome} ×${times.toLocaleString('en')}`).join(', ')
  }
}

/** Calls `work` for 0 to `count` - 1, `width` at a time. */
export async function inParallel(
  count: number,
  width: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await work(index)
  }
  await Promise.all(Array.from({ length: Math.min(width, count) }, worker))
}

/** Calls `work` repeatedly, `width` at a time, until the time is over. */
export async function during(
  milliseconds: number,
  width: number,
  work: (index: number, worker: number) => Promise<unknown>,
): Promise<void> {
  const end = performance.now() + milliseconds
  let next = 0
  const run = async (worker: number): Promise<void> => {
    while (performance.now() < end) await work(next++, worker)
  }
  await Promise.all(Array.from({ length: width }, (_, worker) => run(worker)))
}

const EVERY_MS = 200

export interface Watched {
  /** The longest delay of the event loop, in milliseconds. */
  readonly loopMs: number
  /** The CPU time of its longest tick, in milliseconds: the part of the delay that the server itself caused. */
  readonly turnMs: number
  readonly peakHeapBytes: number
  readonly peakRssBytes: number
}

/** Reads the metrics of a server. */
async function metricsOf(operator: Caller): Promise<readonly Sample[]> {
  const { status, text } = await operator.ask('GET', `${operator.api}/metrics`, { timeoutMs: 120_000 })
  if (status !== 200) throw new Error(`/metrics answered ${status}: ${text.slice(0, 200)}`)
  return parseSamples(text)
}

/** Returns the value of a metric with this label, or the sum over its labels. */
export function valueOf(samples: readonly Sample[], name: string, label = ''): number {
  let sum = 0
  for (const sample of samples) if (sample.name === name && sample.labels.includes(label)) sum += sample.value
  return sum
}

/** Reads a server's metrics repeatedly and keeps the worst values. */
export class Watch {
  readonly #process: MeasuredProcess
  readonly #operator: Caller
  readonly #ended: Promise<void>
  #stopped = false
  #loopMs = 0
  #turnMs = 0
  #heap = 0
  #rss = 0

  private constructor(process: MeasuredProcess, operator: Caller) {
    this.#process = process
    this.#operator = operator
    this.#ended = this.#run()
  }

  static async start(process: MeasuredProcess, operator: Caller): Promise<Watch> {
    // Each read resets the maximum of the event loop.
    await metricsOf(operator)
    await process.call('startTurns')
    await process.call('longestTurn', 'watch')
    return new Watch(process, operator)
  }

  /** Reads the metrics once more and stops; a server that has died adds no values. */
  async stop(): Promise<Watched> {
    this.#stopped = true
    await this.#ended
    await this.#look()
    return { loopMs: this.#loopMs, turnMs: this.#turnMs, peakHeapBytes: this.#heap, peakRssBytes: this.#rss }
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.#look()
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
    }
  }

  async #look(): Promise<void> {
    try {
      const samples = await metricsOf(this.#operator)
      const delay = valueOf(samples, 'broker_event_loop_delay_seconds', 'quantile="1"')
      const heap = valueOf(samples, 'nodejs_heap_size_used_bytes') + valueOf(samples, 'nodejs_external_memory_bytes')
      this.#turnMs = Math.max(this.#turnMs, await this.#process.call<number>('longestTurn', 'watch'))
      this.#loopMs = Math.max(this.#loopMs, delay * 1000)
      this.#heap = Math.max(this.#heap, heap)
      this.#rss = Math.max(this.#rss, valueOf(samples, 'process_resident_memory_bytes'))
    } catch {}
  }
}
