import type { MeasuredProcess } from '../harness/measured-process.ts'
import type { Sample } from '../harness/prometheus.ts'
import { parseSamples } from '../harness/prometheus.ts'
import type { Caller } from './caller.ts'

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
export async function metricsOf(operator: Caller): Promise<readonly Sample[]> {
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
