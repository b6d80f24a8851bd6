import type { OtherNode } from '@signalbox/broker-core/engine'
import type { Msg } from '@nats-io/transport-node'
import { createInbox } from '@nats-io/transport-node'

import type { Connection } from '../connection.ts'
import type { NatsEngineProblem } from '../options.ts'
import { failure } from '../problems.ts'
import type { Subjects } from '../subjects.ts'
import type { ChannelCounts, CounterTable } from './counter-table.ts'
import type { LiveChange } from './live-channels.ts'
import type { NodeDescription } from './peer-messages.ts'
import { readPeerMessage } from './peer-messages.ts'

const TICK_MS = 1_000
/** The longest time between two messages of a node, so that a silent node is recognized as gone. */
const ALIVE_MS = 2_000
const GONE_MS = 7_000
/** The time that a node has to answer. */
const ANSWER_MS = 500
/** The number of channels in one message. */
const PART = 200

/** Another node, as its messages describe it. */
interface Other {
  /** The time of its last message, in ms since the epoch. */
  seen: number
  about: NodeDescription
  readonly counts: Map<string, ChannelCounts>
}

/** The description of a node of an older version. */
const NOT_DESCRIBED: NodeDescription = { name: '', version: '' }

/** The messages between nodes: that a node is alive, its counts, and the channels in its memory. */
export class Peers {
  readonly #connection: Connection
  readonly #subjects: Subjects
  readonly #node: string
  readonly #about: NodeDescription
  readonly #table: CounterTable
  readonly #onLive: (change: LiveChange) => void
  readonly #liveChannels: () => readonly LiveChange[]
  readonly #onProblem: (problem: NatsEngineProblem) => void
  readonly #others = new Map<string, Other>()
  #timer: NodeJS.Timeout | undefined
  #publishedAt = 0
  #livenessEpoch = 0
  #tickedAt = Date.now()

  constructor(
    connection: Connection,
    subjects: Subjects,
    node: string,
    about: NodeDescription,
    table: CounterTable,
    live: { onChange: (change: LiveChange) => void; all: () => readonly LiveChange[] },
    onProblem: (problem: NatsEngineProblem) => void,
  ) {
    this.#connection = connection
    this.#subjects = subjects
    this.#node = node
    this.#about = about
    this.#table = table
    this.#onLive = live.onChange
    this.#liveChannels = live.all
    this.#onProblem = onProblem
  }

  start(): void {
    this.#connection.listen(this.#subjects.nodes('>'), (message) => {
      const what = message.subject.slice(this.#subjects.nodes('').length)
      if (what === 'there') message.respond(this.#node)
      else this.#hear(what, message.string())
    })
    this.#publish('hello', { node: this.#node, about: this.#about })
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
    this.#timer.unref()
  }

  #tick(): void {
    this.#detectSuspension()
    const now = Date.now()
    for (const [node, { seen }] of this.#others) if (now - seen > GONE_MS) this.#others.delete(node)
    if (this.#table.unpublished.size > 0 || now - this.#publishedAt >= ALIVE_MS)
      this.#publishCounts(this.#table.unpublished)
  }

  #publishCounts(keys: Iterable<string>): void {
    const counts = [...keys].map((key) => [key, this.#table.get(key)] as const)
    this.#table.unpublished.clear()
    this.#publishedAt = Date.now()
    let at = 0
    do {
      this.#publish('figures', { node: this.#node, about: this.#about, figures: counts.slice(at, at + PART) })
      at += PART
    } while (at < counts.length)
  }

  /** Announces a channel in memory to all nodes, so that all list it and count it. */
  announce(change: LiveChange): void {
    this.#publish('live', { node: this.#node, channels: [change] })
  }

  #publish(what: string, content: unknown): void {
    // Changes during a lost connection are sent with the hello after it.
    if (!this.#connection.connected) return
    try {
      this.#connection.nc.publish(this.#subjects.nodes(what), JSON.stringify(content))
    } catch (error) {
      this.#onProblem(failure('sending to the other nodes', error))
    }
  }

  #hear(what: string, text: string): void {
    const content = readPeerMessage(text)
    if (!content || content.node === this.#node) return
    const { node } = content
    if (what === 'bye') {
      this.#others.delete(node)
      return
    }
    let other = this.#others.get(node)
    if (!other) this.#others.set(node, (other = { seen: 0, about: NOT_DESCRIBED, counts: new Map() }))
    other.seen = Date.now()
    if (content.about !== undefined) other.about = content.about
    if (what === 'hello') {
      this.#publishCounts(this.#table.keys())
      const channels = this.#liveChannels()
      for (let at = 0; at < channels.length; at += PART) {
        this.#publish('live', { node: this.#node, channels: channels.slice(at, at + PART) })
      }
    }
    if (what === 'figures') for (const [key, counts] of content.counts) other.counts.set(key, counts)
    if (what === 'live') for (const change of content.channels) this.#onLive(change)
  }

  /** Returns the other nodes, by id. */
  describe(): readonly OtherNode[] {
    return [...this.#others].map(([id, { seen, about }]) => {
      const { name, version } = about
      return { id, name, version, lastSeen: seen }
    })
  }

  get others(): readonly string[] {
    return [...this.#others.keys()]
  }

  isAlive(node: string): boolean {
    return this.#others.has(node)
  }

  /**
   * Asks every node, including this one. `silent` lists the known nodes that did not answer in time.
   * @param read Returns the answering node, from its answer.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async askAll(
    what: string,
    content: string,
    read: (answer: Msg) => string,
    waitMs = ANSWER_MS,
  ): Promise<{ readonly silent: readonly string[] }> {
    const silent = new Set(this.others).add(this.#node)
    await this.#connection.ready()
    const { nc } = this.#connection
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const inbox = createInbox()
    const answers = this.#connection.listen(inbox, (answer) => {
      if (answer.data.length > 0) silent.delete(read(answer))
      if (silent.size === 0) resolve()
    })
    const timer = setTimeout(resolve, waitMs)
    try {
      nc.publish(this.#subjects.nodes(what), content, { reply: inbox })
      await over
    } finally {
      clearTimeout(timer)
      answers.unsubscribe()
    }
    return { silent: [...silent] }
  }

  /** Resolves with true when every known node answers now. */
  async everyoneAnswers(): Promise<boolean> {
    try {
      const { silent } = await this.askAll('there', '', (answer) => answer.string())
      return silent.length === 0
    } catch {
      return false
    }
  }

  /**
   * A number that changes when other nodes may have considered this node gone: it was cut off, or its
   * process was suspended.
   */
  get livenessEpoch(): number {
    this.#detectSuspension()
    return this.#livenessEpoch
  }

  #detectSuspension(): void {
    const now = Date.now()
    if (now - this.#tickedAt > GONE_MS / 2) this.#livenessEpoch++
    this.#tickedAt = now
  }

  /** Returns the counts of the other nodes for a channel, by node. */
  countsOf(key: string): readonly (readonly [string, ChannelCounts])[] {
    const found: (readonly [string, ChannelCounts])[] = []
    for (const [node, { counts }] of this.#others) {
      const theirs = counts.get(key)
      if (theirs) found.push([node, theirs])
    }
    return found
  }

  /** Removes counts of other nodes for channels that no longer exist. */
  forgetCounts(isOver: (key: string, counts: ChannelCounts) => boolean): void {
    for (const { counts } of this.#others.values()) {
      for (const [key, theirs] of counts) if (isOver(key, theirs)) counts.delete(key)
    }
  }

  /** Announces this node again after a lost connection. */
  hello(): void {
    this.#livenessEpoch++
    this.#publish('hello', { node: this.#node, about: this.#about })
    this.#publishCounts(this.#table.keys())
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#publish('bye', { node: this.#node })
  }
}
