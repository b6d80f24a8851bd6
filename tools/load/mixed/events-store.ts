import { setTimeout as pause } from 'node:timers/promises'

import { EventStream } from '@signalbox/testkit/event-stream'

import type { StoredEntry } from '../ledgers.ts'
import { Ledger, StoreLedger, Violations, WriterOrder } from '../ledgers.ts'
import type { Frame, Load, Scene } from './clients.ts'
import { bodyOf, CALL_MS, callTool, Clients, RovingMcp } from './clients.ts'

const STORE = 'chaos.history'
const WRITERS = 4
const WRITE_PAUSE_MS = 30
const FOLLOWERS = 3
const PAGE = 100
/**
 * The writer repeats an entry with its `message_id` until it is acknowledged, within the broker's deduplication window
 * (C5: two minutes).
 */
const REPEAT_MS = 110_000
/** The time for followers to catch up after the last write, in milliseconds. */
const CATCH_UP_MS = 60_000

/**
 * Writers that append to one events store and repeat unacknowledged entries, and followers that check every sequence.
 */
export class EventsStoreLoad implements Load {
  readonly appends = new Ledger('store append')
  readonly follows = new Ledger('store follow')
  readonly ledgers = [this.appends, this.follows]
  readonly #scene: Scene
  readonly #writers: Clients
  readonly #followers: Clients
  readonly #violations = new Violations()
  readonly #ledger = new StoreLedger(STORE, this.#violations)
  readonly #order = new WriterOrder()
  readonly #begunAt = new Map<string, number>()
  readonly #positions: number[] = []
  #probes = 0

  constructor(scene: Scene) {
    this.#scene = scene
    this.#writers = new Clients(this.appends, scene)
    this.#followers = new Clients(this.follows, scene)
  }

  async start(): Promise<void> {
    const { front, watch } = this.#scene
    for (let i = 0; i < WRITERS; i++) this.#write(`w${i}`, new RovingMcp(front, this.#writers.stopped))
    for (let i = 0; i < FOLLOWERS; i++) {
      this.#positions[i] = 1
      watch.join(this.follows.kind, `${i}`)
      this.#followers.beside(() => this.#follow(i))
    }
  }

  #write(writer: string, mcp: RovingMcp): void {
    let [n, firstTriedAt] = [0, performance.now()]
    this.#writers.add(writer, { pauseMs: WRITE_PAUSE_MS, patient: true }, async () => {
      if (performance.now() - firstTriedAt > REPEAT_MS) [n, firstTriedAt] = [n + 1, performance.now()]
      await this.#append(`${writer}#${n}`, (args) => mcp.call('events_store_publish', args, CALL_MS))
      ;[n, firstTriedAt] = [n + 1, performance.now()]
    })
  }

  async #append(body: string, call: RovingMcpCall): Promise<number> {
    this.#begunAt.set(body, performance.now())
    const { structured } = await call({ channel: STORE, body, tags: { message_id: body } })
    const sequence = Number(structured['sequence'])
    this.#ledger.acknowledge(body, sequence)
    if (structured['duplicate'] === true) this.appends.again++
    return sequence
  }

  /** Subscribes once, from the follower's current position. */
  async #follow(i: number): Promise<void> {
    const from = `channel=${STORE}&events_store_type=4&events_store_value=${this.#positions[i]}`
    const stream = await EventStream.open(`${this.#scene.front}/ce/subscribe/events-store?${from}`, {
      headMs: CALL_MS,
      signal: this.#followers.stopped,
      onEvent: ({ event, id, data }) => {
        if (event === 'error') return
        const frame = JSON.parse(data) as Frame
        this.#take(i, { body: bodyOf(frame), sequence: Number(id), timestamp: frame.time })
      },
    })
    await stream.closed
    await pause(10)
  }

  #take(i: number, entry: StoredEntry): void {
    this.#ledger.take(this.#positions[i] ?? 1, [entry])
    this.#positions[i] = entry.sequence + 1
    this.follows.acknowledged++
    this.#order.take(entry.sequence, entry.body)
    this.#scene.watch.succeeded(this.follows.kind, `${i}`, this.#begunAt.get(entry.body) ?? 0)
  }

  async probe(node: string): Promise<void> {
    // Uses a new writer id each time, because several nodes may be checked at once, and never repeats.
    const call: RovingMcpCall = (args) => callTool(node, 'events_store_publish', args, CALL_MS)
    const sequence = await this.#append(`probe-${this.#probes++}#0`, call)
    const [latest] = await readPage(node, { from_sequence: sequence })
    if (latest?.sequence !== sequence) {
      this.appends.add('lost', `${sequence} cannot be read at the node that has acknowledged it`)
    }
  }

  stop(): Promise<void> {
    return this.#writers.stop()
  }

  async settle(nodes: readonly string[]): Promise<void> {
    const last = await this.#readAll(nodes)
    const behind = (): readonly number[] => this.#positions.filter((next) => next <= last)
    const deadline = performance.now() + CATCH_UP_MS
    while (behind().length > 0 && performance.now() < deadline) await pause(100)
    await this.#followers.stop()
    this.#ledger.finish(last)
    this.follows.attempted = FOLLOWERS * last
    for (const next of behind()) this.follows.add('lost', `a follower has ended at ${next - 1} of ${last}`)
    this.#close()
  }

  /** Reads the whole store again at every node; resolves with its last sequence. */
  async #readAll(nodes: readonly string[]): Promise<number> {
    let last = 0
    for (const node of nodes) {
      let next = 1
      for (;;) {
        const page = await readPage(node, { from_sequence: next })
        this.#ledger.take(next, page)
        if (page.length === 0) break
        next += page.length
      }
      last = Math.max(last, next - 1)
      if (next - 1 < last) this.appends.add('lost', `${node} ends at ${next - 1}, another node at ${last}`)
    }
    return last
  }

  #close(): void {
    const violations = this.#violations
    const texts = violations.examples.join('; ')
    this.appends.add('lost', texts, violations.count('storeLost'))
    const also = violations.count('storeLost') > 0 ? 'as above' : texts
    this.appends.add('doubled', also, violations.count('storeRepeat'))
    this.appends.add('outOfOrder', also, violations.count('storeGap') + violations.count('storeChanged'))
    for (const example of this.#order.problems) this.appends.add('outOfOrder', example)
  }
}

type RovingMcpCall = (args: Readonly<Record<string, unknown>>) => ReturnType<RovingMcp['call']>

async function readPage(node: string, from: { readonly from_sequence: number }): Promise<readonly StoredEntry[]> {
  const args = { channel: STORE, max_messages: PAGE, ...from }
  const { text } = await callTool(node, 'events_store_read', args, CALL_MS)
  return JSON.parse(text) as readonly StoredEntry[]
}
