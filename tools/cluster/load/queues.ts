import { setTimeout as pause } from 'node:timers/promises'

import { Ledger } from './ledger.ts'
import { ask, callTool, RovingMcp } from './calls.ts'
import type { Frame } from './frames.ts'
import { bodyOf } from './frames.ts'
import type { Load, Scene } from './load.ts'
import { CALL_MS, Clients } from './load.ts'

const QUEUE = 'chaos.work'
const SENDERS = 4
const SEND_PAUSE_MS = 25
const RECEIVERS = 6
/** A lease, in seconds; what a dead node has leased may take until the ack wait, 35 s. */
const LEASE_S = 20
/** With nothing coming for so long everything has come: longer than the ack wait, in milliseconds. */
const QUIET_MS = 45_000
/** A server that crashes may forget acks of so long before, in milliseconds. */
const FORGETS_MS = 15_000

type Send = (args: Readonly<Record<string, unknown>>) => Promise<unknown>

/** A leased message, as `/ce/queue/receive` hands it out. */
interface Delivery {
  readonly event: Frame
  readonly receipt: string
}

interface Answer<T> {
  readonly is_error: boolean
  readonly data: T
}

/** Sends to a queue by MCP, and receives on leases at `/ce` with acks. */
export class QueueLoad implements Load {
  readonly sends = new Ledger('queue send')
  readonly receives = new Ledger('queue receive')
  readonly ledgers = [this.sends, this.receives]
  readonly #scene: Scene
  readonly #senders: Clients
  readonly #receivers: Clients
  readonly #acknowledged = new Set<string>()
  readonly #received = new Set<string>()
  /** When the ack of a message was confirmed. */
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
      const mcp = new RovingMcp(front)
      this.#senders.stopped.addEventListener('abort', () => mcp.close(), { once: true })
      const call: Send = (args) => mcp.call('queue_send', args, CALL_MS)
      this.#senders.add(`${i}`, { pauseMs: SEND_PAUSE_MS }, () => this.#send(call))
    }
    for (let i = 0; i < RECEIVERS; i++) this.#receivers.add(`${i}`, { pauseMs: 0 }, () => this.#receive(front))
  }

  /** Each attempt is a message of its own, so one without an answer may be there once. */
  async #send(call: Send): Promise<void> {
    const id = `m${this.#next++}`
    await call({ channel: QUEUE, body: id })
    this.#acknowledged.add(id)
  }

  async #receive(base: string): Promise<void> {
    const wanted = `channel=${QUEUE}&max_messages=10&wait_timeout=1&visibility_seconds=${LEASE_S}`
    const answer = await ask(`${base}/ce/queue/receive?${wanted}`, CALL_MS, {})
    const { messages } = (answer as Answer<{ messages: Delivery[] }>).data
    const ids = messages.map(({ event }) => bodyOf(event))
    for (const id of ids) this.#take(id)
    if (messages.length === 0) return
    const receipts = messages.map(({ receipt }) => `receipt=${encodeURIComponent(receipt)}`).join('&')
    const settled = (await ask(`${base}/ce/queue/ack?${receipts}`, CALL_MS, {})) as Answer<unknown>
    if (settled.is_error) return
    for (const id of ids) this.#settledAt.set(id, performance.now())
  }

  #take(id: string): void {
    const now = performance.now()
    this.#lastReceivedAt = now
    const settledAt = this.#settledAt.get(id)
    if (this.#received.has(id)) this.receives.again++
    this.#received.add(id)
    if (settledAt === undefined) return
    if (this.#scene.struckServers.overlapMs(settledAt - FORGETS_MS, now) > 0) return
    this.receives.break('doubled', `${id} came ${Math.round(now - settledAt)} ms after its ack, no server was struck`)
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
    while (this.#missing().length > 0 && performance.now() - this.#lastReceivedAt < QUIET_MS) await pause(200)
    await this.#receivers.stop()
    const missing = this.#missing()
    this.sends.break('lost', missing.slice(0, 20).join(', '), missing.length)
  }

  #missing(): readonly string[] {
    return [...this.#acknowledged].filter((id) => !this.#received.has(id))
  }
}
