// Preloaded (`--import`) into every measured process: it reports the resources that the process has used.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

import { answerCalls } from './calls.ts'
import { Profiler } from './profiler.ts'

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
