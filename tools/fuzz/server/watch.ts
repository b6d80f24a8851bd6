// Preloaded (`--import`) into the fuzzed server: it reports the longest block of its event loop, and its memory.
import { isMainThread } from 'node:worker_threads'

import { answerCalls } from '../../harness/calls.ts'

/** The main thread's use of time since the previous call. */
export interface LoopUse {
  /** The most CPU time between two ticks of the loop, in milliseconds: waiting for a busy machine does not count. */
  readonly heldMs: number
}

const TICK_MS = 5

if (isMainThread && process.send !== undefined) {
  let worst = 0
  let last = process.threadCpuUsage()
  const look = (): void => {
    const now = process.threadCpuUsage()
    worst = Math.max(worst, now.user - last.user + now.system - last.system)
    last = now
  }
  setInterval(look, TICK_MS).unref()
  answerCalls({
    loopUse: (): LoopUse => {
      const use = { heldMs: worst / 1000 }
      worst = 0
      return use
    },
    /** Bytes in use after a collection: the heap, and the buffers outside it. */
    bytesKept: async () => {
      for (let i = 0; i < 4; i++) {
        globalThis.gc?.()
        await new Promise((resolve) => setTimeout(resolve, 30))
      }
      const { heapUsed, external } = process.memoryUsage()
      last = process.threadCpuUsage()
      worst = 0
      return heapUsed + external
    },
  })
  process.channel?.unref()
}
