// The yardstick of durable writes: an append-only file, written and synced asynchronously. All records that wait when a
// write begins share it (group commit). It stores only the bytes.
import { fdatasync, openSync, writev } from 'node:fs'
import { promisify } from 'node:util'

import { serveCalls } from '@signalbox/testkit/calls'

const write = promisify(writev)
const sync = promisify(fdatasync)

class RawLog {
  readonly #file: number
  #waiting: { readonly record: Uint8Array; readonly stored: () => void }[] = []
  #flushing = false

  constructor(path: string) {
    this.#file = openSync(path, 'a')
  }

  append(record: Uint8Array): Promise<void> {
    return new Promise((stored) => {
      this.#waiting.push({ record, stored })
      if (!this.#flushing) {
        this.#flushing = true
        // Appends of the same tick share the first write.
        setImmediate(() => void this.#flush())
      }
    })
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting
      this.#waiting = []
      await write(
        this.#file,
        group.map(({ record }) => record),
      )
      await sync(this.#file)
      for (const { stored } of group) stored()
    }
    this.#flushing = false
  }
}

let log: RawLog | undefined

serveCalls({
  open: ({ path }: { path: string }) => {
    log = new RawLog(path)
  },
  append: async ({ durationMs, producers, bytes }: { durationMs: number; producers: number; bytes: number }) => {
    const record = new Uint8Array(bytes).fill(0x61)
    const used = process.cpuUsage()
    const begin = performance.now()
    let operations = 0
    const produce = async () => {
      while (performance.now() - begin < durationMs) {
        await log?.append(record)
        operations++
      }
    }
    await Promise.all(Array.from({ length: producers }, produce))
    const { user, system } = process.cpuUsage(used)
    return { operations, wallMs: performance.now() - begin, cpuMicros: user + system }
  },
})
process.once('SIGTERM', () => process.exit(0))
