import type { AgentInboxes } from '@signalbox/connector-a2a'

/** The depth of an inbox when it was read. */
export interface InboxDepth {
  readonly agentId: string
  readonly waiting: number
  /** The time at which the oldest waiting request was sent, in ms since the epoch; undefined if none waits. */
  readonly oldestAt: number | undefined
}

type Source = Pick<AgentInboxes, 'ids' | 'status'>

/** The time for which the depths are reused, in ms: there may be several scrapers. */
const SHOWN_MS = 5_000
/** The longest wait of a scrape for new depths, in ms; after it the page has the previous ones. */
const WAIT_MS = 2_000
/** The number of inboxes that are read at the same time. */
const PARALLEL = 16

/** Reads the depths of all inboxes for the metrics. */
export class InboxDepths {
  readonly #source: () => Source | undefined
  #depths: readonly InboxDepth[] = []
  #readAt = -Infinity
  #pass: Promise<void> | undefined

  constructor(source: () => Source | undefined) {
    this.#source = source
  }

  /** Returns the depths. If the engine fails or is slow, they are the previous ones. */
  async read(): Promise<readonly InboxDepth[]> {
    const source = this.#source()
    const ids = new Set(source?.ids())
    if (source === undefined || ids.size === 0) return []
    if (performance.now() - this.#readAt >= SHOWN_MS) await this.#wait(source)
    return this.#depths.filter(({ agentId }) => ids.has(agentId))
  }

  /** Waits for the pass that runs, or for a new one. Concurrent reads share it. */
  async #wait(source: Source): Promise<void> {
    this.#pass ??= this.#readAll(source)
      .catch(() => {})
      .finally(() => (this.#pass = undefined))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, WAIT_MS)))
    await Promise.race([this.#pass, late])
    clearTimeout(timer)
  }

  async #readAll(source: Source): Promise<void> {
    const left = source.ids().toReversed()
    const depths: InboxDepth[] = []
    const work = async (): Promise<void> => {
      for (let agentId = left.pop(); agentId !== undefined; agentId = left.pop()) {
        const status = await source.status(agentId)
        if (status === undefined) continue
        const { waiting, oldestSeconds } = status
        depths.push({ agentId, waiting, oldestAt: waiting === 0 ? undefined : Date.now() - oldestSeconds * 1000 })
      }
    }
    await Promise.all(Array.from({ length: Math.min(PARALLEL, left.length) }, work))
    this.#depths = depths
    this.#readAt = performance.now()
  }
}
