import { setTimeout as pause } from 'node:timers/promises'

import { Ledger } from '../ledgers.ts'
import type { Frame, Load, Scene } from './clients.ts'
import { ask, bodyOf, CALL_MS, callTool, Clients, Refused, RovingMcp } from './clients.ts'

const QUEUE = 'chaos.work'
const SENDERS = 4
const SEND_PAUSE_MS = 25
const RECEIVERS = 6
/** A lease, in seconds; messages leased by a dead node return after the ack wait, 35 s at most. */
const LEASE_S = 20
/** After this silence every message has arrived: longer than the ack wait, in milliseconds. */
const QUIET_MS = 45_000
/** The age of acks that a server may lose in a crash, in milliseconds. */
const FORGETS_MS = 15_000
/** The pause before an ack without a result is repeated, in milliseconds. */
const REPEAT_MS = 100

type Send = (args: Readonly<Record<string, unknown>>) => Promise<unknown>

/** A leased message in the answer of `/ce/queue/receive`. */
interface Delivery {
  readonly event: Frame
  readonly receipt: string
}

interface Answer<T> {
  readonly data: T
}

interface Settled {
  readonly lost: readonly string[]
}

/** Sends to a queue by MCP, and receives with leases and acks at `/ce`. */
export class QueueLoad implements Load {
  readonly sends = new Ledger('queue send')
  readonly receives = new Ledger('queue receive')
  readonly ledgers = [this.sends, this.receives]
  readonly #scene: Scene
  readonly #senders: Clients
  readonly #receivers: Clients
  readonly #acknowledged = new Set<string>()
  /** The number of times that each message was received. */
  readonly #received = new Map<string, number>()
  /** The receives of a message until the one whose ack was answered as lost: it must come again. */
  readonly #answeredLost = new Map<string, number>()
  /** The time at which the ack of a message was confirmed. */
  readonly #settledAt = new Map<string, number>()
  #lastReceivedAt = 0
  #next = 0

  constructor(scene: Scene) {
    this.#scene = scene
    this.#senders = new Clients(this.sends, scene)
    this.#receivers = new Clients(this.receives, scene)
  }

  async start(): Promise<void> {
    const { front } = this.#scene
    for (let i = 0; i < SENDERS; i++) {
      const mcp = new RovingMcp(front, this.#senders.stopped)
      const call: Send = (args) => mcp.call('queue_send', args, CALL_MS)
      this.#senders.add(`${i}`, { pauseMs: SEND_PAUSE_MS }, () => this.#send(call))
    }
    for (let i = 0; i < RECEIVERS; i++) this.#receivers.add(`${i}`, { pauseMs: 0 }, () => this.#receive(front))
  }

  /** Each attempt sends a new message, so an attempt without an answer may be stored once. */
  async #send(call: Send): Promise<void> {
    const id = `m${this.#next++}`
    await call({ channel: QUEUE, body: id })
    this.#acknowledged.add(id)
  }

  async #receive(base: string): Promise<void> {
    const wanted = `channel=${QUEUE}&max_messages=10&wait_timeout=1&visibility_seconds=${LEASE_S}`
    const leasedUntil = performance.now() + LEASE_S * 1000
    const answer = await ask(`${base}/ce/queue/receive?${wanted}`, CALL_MS, {})
    const { messages } = (answer as Answer<{ messages: Delivery[] }>).data
    if (messages.length === 0) return
    const taken = messages.map(({ event, receipt }) => {
      const id = bodyOf(event)
      return { id, receipt, times: this.#take(id) }
    })
    const lost = new Set(await this.#ack(base, messages, leasedUntil))
    for (const { id, receipt, times } of taken) {
      if (lost.has(receipt)) this.#answeredLost.set(id, Math.max(times, this.#answeredLost.get(id) ?? 0))
      else this.#settledAt.set(id, performance.now())
    }
  }

  /** Repeats the ack until it has a result, as long as the lease lasts. Returns the lost receipts. */
  async #ack(base: string, messages: readonly Delivery[], leasedUntil: number): Promise<readonly string[]> {
    const receipts = messages.map(({ receipt }) => `receipt=${encodeURIComponent(receipt)}`).join('&')
    for (;;) {
      try {
        const settled = (await ask(`${base}/ce/queue/ack?${receipts}`, CALL_MS, {})) as Answer<Settled>
        // After the lease no result is promised.
        if (performance.now() > leasedUntil && settled.data.lost.length > 0) throw new Error('the lease is over')
        return settled.data.lost
      } catch (error) {
        if (performance.now() > leasedUntil) throw error
        if (error instanceof Refused && error.code !== 'ENGINE_UNAVAILABLE') throw error
        await pause(REPEAT_MS)
      }
    }
  }

  /** Records a receive of a message, and returns their number. */
  #take(id: string): number {
    const now = performance.now()
    this.#lastReceivedAt = now
    const settledAt = this.#settledAt.get(id)
    const times = (this.#received.get(id) ?? 0) + 1
    if (times > 1) this.receives.again++
    this.#received.set(id, times)
    if (settledAt === undefined || this.#scene.struckServers.overlapMs(settledAt - FORGETS_MS, now) > 0) return times
    this.receives.add('doubled', `${id} came ${Math.round(now - settledAt)} ms after its ack, no server was struck`)
    return times
  }

  async probe(node: string): Promise<void> {
    await this.#send((args) => callTool(node, 'queue_send', args, CALL_MS))
    await this.#receive(node)
  }

  stop(): Promise<void> {
    return this.#senders.stop()
  }

  async settle(): Promise<void> {
    this.#lastReceivedAt = performance.now()
    const isOpen = (): boolean => this.#missing().length > 0 || this.#gone().length > 0
    while (isOpen() && performance.now() - this.#lastReceivedAt < QUIET_MS) await pause(200)
    await this.#receivers.stop()
    const missing = this.#missing()
    this.sends.add('lost', missing.slice(0, 20).join(', '), missing.length)
    const gone = this.#gone()
    this.receives.add('gone', `${gone.slice(0, 20).join(', ')} never came again after a lost ack`, gone.length)
  }

  /** The messages whose ack was answered as lost, and that did not come again. */
  #gone(): readonly string[] {
    return [...this.#answeredLost].filter(([id, times]) => this.#received.get(id) === times).map(([id]) => id)
  }

  #missing(): readonly string[] {
    return [...this.#acknowledged].filter((id) => !this.#received.has(id))
  }
}
