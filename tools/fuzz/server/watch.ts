// Preloaded (`--import`) into the server that is fuzzed: it answers how long its event loop was held, and what it keeps.
import { isMainThread } from 'node:worker_threads'

import { answerCalls } from '../../harness/calls.ts'

/** How the main thread spent its time since it was last asked. */
export interface LoopUse {
  /** The most CPU time between two turns of the loop, in milliseconds: waiting for a busy machine does not count. */
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
    /** Bytes in use after a collection: of the heap, and of buffers beside it. */
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
