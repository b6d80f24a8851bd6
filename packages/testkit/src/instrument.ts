// Preloaded (`--import`) into every measured process: it reports the resources that the process has used.
import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

import { answerCalls } from './calls.ts'

/** The interval of loop samples, in milliseconds. Node's histogram includes it, so it is subtracted. */
const RESOLUTION_MS = 10

export interface MemoryUse {
  readonly rssBytes: number
  /** V8's heap and its external memory, such as buffers. */
  readonly heapBytes: number
}

export interface LoopDelay {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  readonly samples: number
}

/** Collects garbage if the process was started with --expose-gc, and waits until the memory is released. */
async function collectGarbage(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** The longest tick in microseconds since each reader read it. */
let turns: { timer: NodeJS.Timeout; longest: Map<string, number> } | undefined

/**
 * Measures the CPU time of the event loop's ticks: unlike the delay, it does not grow when other processes use the
 * processor.
 */
function startTurns(): void {
  let before = process.threadCpuUsage()
  clearInterval(turns?.timer)
  const look = (): void => {
    const now = process.threadCpuUsage()
    const used = now.user - before.user + now.system - before.system
    before = now
    if (turns === undefined) return
    for (const [reader, longest] of turns.longest) if (used > longest) turns.longest.set(reader, used)
  }
  turns = { timer: setInterval(look, RESOLUTION_MS).unref(), longest: new Map() }
}

let delay: ReturnType<typeof monitorEventLoopDelay> | undefined

function milliseconds(nanoseconds: number): number {
  return Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
}

const INTERVAL_MICROS = 250

/** The id of the message that ends a worker's profile. */
const STOP = 4

interface WorkerMessage {
  readonly params: { readonly sessionId: string; readonly message: string }
}

interface WorkerAttached {
  readonly params: { readonly sessionId: string; readonly workerInfo: { readonly title: string } }
}

/**
 * Profiles every thread of this process from inside: `--cpu-prof` does not reach worker threads with their own
 * arguments.
 */
class Profiler {
  readonly #session = new Session()
  readonly #workers = new Map<string, (profile: unknown) => void>()
  readonly #profiles: Promise<unknown>[] = []
  #started: Promise<void> | undefined

  start(): void {
    this.#started = this.#start()
  }

  async #start(): Promise<void> {
    const session = this.#session
    session.connect()
    session.on('NodeWorker.attachedToWorker', ({ params }: WorkerAttached) => this.#attached(params.sessionId))
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }: WorkerMessage) => {
      const { id, result } = JSON.parse(params.message) as { id?: number; result?: { profile?: unknown } }
      if (id === STOP) this.#workers.get(params.sessionId)?.(result?.profile)
    })
    await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: INTERVAL_MICROS })
    await session.post('Profiler.start')
  }

  #attached(sessionId: string): void {
    this.#profiles.push(new Promise((resolve) => this.#workers.set(sessionId, resolve)))
    this.#tell(sessionId, 1, 'Profiler.enable')
    this.#tell(sessionId, 2, 'Profiler.setSamplingInterval', { interval: INTERVAL_MICROS })
    this.#tell(sessionId, 3, 'Profiler.start')
  }

  #tell(sessionId: string, id: number, method: string, params: object = {}): void {
    const message = JSON.stringify({ id, method, params })
    void this.#session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
  }

  /** Stops, and writes a file for each thread: `main.cpuprofile`, `worker-1.cpuprofile` … */
  async stop(folder: string): Promise<void> {
    await this.#started
    mkdirSync(folder, { recursive: true })
    const { profile } = await this.#session.post('Profiler.stop')
    writeFileSync(join(folder, 'main.cpuprofile'), JSON.stringify(profile))
    for (const sessionId of this.#workers.keys()) this.#tell(sessionId, STOP, 'Profiler.stop')
    for (const [i, worker] of (await Promise.all(this.#profiles)).entries()) {
      writeFileSync(join(folder, `worker-${i + 1}.cpuprofile`), JSON.stringify(worker))
    }
    this.#session.disconnect()
  }
}

/**
 * The folder for profiles. If it is set, the process is profiled from its start until the harness requests the files.
 */
const profiles = process.env['SIGNALBOX_PROFILES']

if (isMainThread && process.send !== undefined) {
  const profiler = profiles === undefined ? undefined : new Profiler()
  profiler?.start()
  answerCalls({
    /** CPU time of all threads so far, in microseconds. */
    cpuMicros: () => {
      const { user, system } = process.cpuUsage()
      return user + system
    },
    /** Resident memory in bytes, after a collection if the process was started with --expose-gc. */
    rssBytes: async () => {
      await collectGarbage()
      return process.memoryUsage().rss
    },
    /** Memory after a collection, as above. */
    memory: async (): Promise<MemoryUse> => {
      await collectGarbage()
      const { rss, heapUsed, external } = process.memoryUsage()
      return { rssBytes: rss, heapBytes: heapUsed + external }
    },
    writeProfiles: () => profiler?.stop(profiles ?? ''),
    startTurns,
    /** The CPU time of the longest tick since the last call of this reader, in milliseconds; 0 at its first call. */
    longestTurn: (reader: string): number => {
      const micros = turns?.longest.get(reader) ?? 0
      turns?.longest.set(reader, 0)
      return micros / 1000
    },
    startLoopDelay: () => {
      delay ??= monitorEventLoopDelay({ resolution: RESOLUTION_MS })
      delay.reset()
      delay.enable()
    },
    stopLoopDelay: (): LoopDelay => {
      if (delay === undefined) throw new Error('call startLoopDelay first')
      delay.disable()
      return {
        p50Ms: milliseconds(delay.percentile(50)),
        p99Ms: milliseconds(delay.percentile(99)),
        maxMs: milliseconds(delay.max),
        samples: delay.count,
      }
    },
  })
  // The channel to the harness must not keep a finished server alive.
  process.channel?.unref()
}
