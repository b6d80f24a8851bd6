import type { Connection } from '../connection.ts'
import type { KeyedRecords } from '../keyed-records.ts'
import type { NatsEngineProblem } from '../options.ts'
import { failure, reportFailure } from '../problems.ts'
import type { Subjects } from '../subjects.ts'
import type { ChannelCounts, CounterTable } from './counter-table.ts'
import { addCounts, countsFrom, laterCounts, noCounts } from './counter-table.ts'
import type { Peers } from './peers.ts'

/** The stored counters of one channel. Each running node has its own part, which only that node writes. */
interface Record_ {
  readonly retired: ChannelCounts
  readonly nodes: Record<string, { readonly figures: ChannelCounts; readonly at: number }>
}

const STORE_MS = 5_000
/** The silence after which a node's part is added to the retired counts. */
const RETIRE_MS = 60 * 60_000
const TRIES = 20

/**
 * Counters of stored channels over all nodes and restarts. The sum has two parts: the retired counts of
 * nodes that ended, and for each running node its stored or its published counts, whichever are later. It is
 * exact when no messages flow, and otherwise a second behind.
 */
export class Counters {
  readonly #connection: Connection
  readonly #keyedRecords: KeyedRecords
  readonly #subjects: Subjects
  readonly #node: string
  readonly #table: CounterTable
  readonly #peers: Peers
  readonly #onProblem: (problem: NatsEngineProblem) => void
  readonly #isStored: (key: string) => boolean
  #timer: NodeJS.Timeout | undefined
  #storing: Promise<void> | undefined

  constructor(
    connection: Connection,
    keyedRecords: KeyedRecords,
    subjects: Subjects,
    node: string,
    table: CounterTable,
    peers: Peers,
    isStored: (key: string) => boolean,
    onProblem: (problem: NatsEngineProblem) => void,
  ) {
    this.#connection = connection
    this.#keyedRecords = keyedRecords
    this.#subjects = subjects
    this.#node = node
    this.#table = table
    this.#peers = peers
    this.#isStored = isStored
    this.#onProblem = onProblem
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#storing ??= this.#store(false)
        .catch((error: unknown) => reportFailure(this.#onProblem, 'storing counters', error))
        .finally(() => (this.#storing = undefined))
    }, STORE_MS)
    this.#timer.unref()
  }

  /**
   * Returns the counts over all nodes; for a stored channel including those that were stored before
   * restarts.
   */
  async total(key: string): Promise<ChannelCounts> {
    const record = this.#isStored(key) ? await this.#read(key) : undefined
    const sum = { ...(record?.retired ?? noCounts()) }
    const reported = new Map(this.#peers.countsOf(key))
    for (const [node, { figures }] of Object.entries(record?.nodes ?? {})) {
      if (node === this.#node) continue
      const live = reported.get(node)
      reported.delete(node)
      addCounts(sum, laterCounts(figures, live ?? { ...figures, leased: 0, retrying: 0, subscribers: 0 }))
    }
    for (const counts of reported.values()) addCounts(sum, counts)
    const own = this.#table.get(key)
    if (own) addCounts(sum, own)
    return sum
  }

  /** Returns the counts of the running nodes since their start, without a request to the servers. */
  live(key: string): ChannelCounts {
    const sum = noCounts()
    for (const [, counts] of this.#peers.countsOf(key)) addCounts(sum, counts)
    addCounts(sum, this.#table.get(key) ?? noCounts())
    return sum
  }

  async #read(key: string): Promise<(Record_ & { revision: number }) | undefined> {
    const record = await this.#keyedRecords.get(this.#subjects.keyedRecord('c', key))
    return record && { ...recordFrom(record.text), revision: record.revision }
  }

  async #store(retire: boolean): Promise<void> {
    if (!this.#connection.connected) return
    const keys = [...this.#table.unstored].filter((key) => this.#isStored(key))
    for (const key of keys) this.#table.unstored.delete(key)
    const outcomes = await Promise.allSettled(keys.map((key) => this.#storeOne(key, retire)))
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') continue
      this.#table.unstored.add(keys[i] ?? '')
      this.#onProblem(failure('storing counters', outcome.reason))
    }
  }

  async #storeOne(key: string, retire: boolean): Promise<void> {
    for (let tries = 0; tries < TRIES; tries++) {
      const own = this.#table.get(key)
      if (!own) return
      const stored = await this.#read(key)
      const retired = { ...(stored?.retired ?? noCounts()) }
      const nodes = { ...stored?.nodes }
      delete nodes[this.#node]
      const now = Date.now()
      for (const [node, { figures, at }] of Object.entries(nodes)) {
        if (this.#peers.isAlive(node) || now - at < RETIRE_MS) continue
        addCounts(retired, { ...figures, leased: 0, retrying: 0, subscribers: 0 })
        delete nodes[node]
      }
      if (retire) addCounts(retired, { ...own, leased: 0, retrying: 0, subscribers: 0 })
      else nodes[this.#node] = { figures: own, at: now }
      const text = JSON.stringify({ retired, nodes })
      if (await this.#keyedRecords.put(this.#subjects.keyedRecord('c', key), text, stored?.revision ?? 0)) return
    }
    throw new Error(`other nodes wrote the counters first, ${TRIES} times`)
  }

  async forget(key: string): Promise<void> {
    this.#table.forget(key)
    await this.#keyedRecords.remove(this.#subjects.keyedRecord('c', key))
  }

  /** Adds this node's counts to the retired ones. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#storing
    for (const key of this.#table.keys()) this.#table.unstored.add(key)
    await this.#store(true)
  }
}

function recordFrom(text: string): Record_ {
  const empty = { retired: noCounts(), nodes: {} }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || !('retired' in value) || !('nodes' in value)) return empty
    const nodes: Record_['nodes'] = {}
    for (const [node, part] of Object.entries(value.nodes ?? {})) {
      const { figures, at } = Object.fromEntries(Object.entries(part ?? {})) as Record<string, unknown>
      nodes[node] = { figures: countsFrom(figures), at: typeof at === 'number' ? at : 0 }
    }
    return { retired: countsFrom(value.retired), nodes }
  } catch {
    return empty
  }
}
