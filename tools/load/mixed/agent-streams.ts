import { EventStream, NoStream } from '@signalbox/testkit/event-stream'
import type { EventSourceMessage } from '@signalbox/testkit/event-stream'

import type { Order } from '../agent.ts'
import { Ledger } from '../ledgers.ts'
import { agentRequest, AGENTS, rpcResult } from './agents.ts'
import type { Load, Scene } from './clients.ts'
import { Clients, Refused } from './clients.ts'

const CLIENTS = 6
const PAUSE_MS = 50
const ORDERS: readonly Order[] = [
  { events: 200, everyMs: 10 },
  { events: 60, everyMs: 100 },
  { events: 20, everyMs: 250 },
]
/** The `CONNECTORSA2_A_MAX_SSE_IDLE_SECONDS` of the nodes: the time after which an idle stream ends. */
export const STREAM_IDLE_S = 30
/** The time-out for the agent's headers, and the time that the gateway adds to it, in seconds. */
const TIMEOUT_S = 5
const GATEWAY_BUFFER_S = 10
/** The client waits for a frozen node, to distinguish calls that hang from late ones; in milliseconds. */
const GIVE_UP_MS = 90_000

/** Streams of numbered events from agents; each must end with a terminal event or a closed connection. */
export class AgentStreamLoad implements Load {
  readonly ledger = new Ledger('agent stream')
  readonly ledgers = [this.ledger]
  /** The ends of the streams that began. */
  readonly ends = { done: 0, error: 0, closed: 0, hung: 0 }
  readonly #scene: Scene
  readonly #clients: Clients
  #next = 0

  constructor(scene: Scene) {
    this.#scene = scene
    this.#clients = new Clients(this.ledger, scene)
  }

  async start(): Promise<void> {
    for (let i = 0; i < CLIENTS; i++) {
      const options = { pauseMs: PAUSE_MS, patient: true }
      this.#clients.add(`${i}`, options, () => this.#follow(`${i}`, ORDERS[this.#next % ORDERS.length] ?? SHORT))
    }
  }

  /** Reads one stream to its end. */
  async #follow(client: string, order: Order, base = this.#scene.front): Promise<void> {
    const agent = AGENTS[this.#next++ % AGENTS.length] ?? AGENTS[0]
    const seen = new StreamEvents(this.ledger, order.events)
    const begunAt = performance.now()
    let heardAt = begunAt
    const stream = await openStream(`${base}/a2a/${agent}`, order, (event) => {
      heardAt = performance.now()
      const sentAt = seen.take(event)
      if (sentAt !== undefined) this.#scene.watch.succeeded(this.ledger.kind, client, sentAt)
    }).catch((error: unknown) => {
      this.#clients.checkBound(`stream ${client}, its head`, begunAt, (TIMEOUT_S + GATEWAY_BUFFER_S) * 1000)
      throw error
    })
    heardAt = performance.now()
    const watching = setInterval(() => {
      if (performance.now() - heardAt > GIVE_UP_MS) stream.close()
    }, 500)
    await stream.closed
    clearInterval(watching)
    const hungBefore = this.ledger.count('hung')
    this.#clients.checkBound(`stream ${client}`, heardAt, STREAM_IDLE_S * 1000)
    const hung = this.ledger.count('hung') > hungBefore
    this.ends[hung ? 'hung' : (seen.end ?? 'closed')]++
    if (seen.end === undefined) throw new Error('the connection was closed')
    if (seen.end === 'error') throw new Refused(seen.reason, seen.reason)
  }

  probe(node: string): Promise<void> {
    return this.#follow('probe', SHORT, node)
  }

  stop(): Promise<void> {
    return this.#clients.stop()
  }

  async settle(): Promise<void> {}
}

const SHORT: Order = { events: 3, everyMs: 10 }

/** @throws Refused for a JSON-RPC error */
async function openStream(url: string, order: Order, onEvent: (event: EventSourceMessage) => void) {
  const body = JSON.stringify(agentRequest('message/stream', JSON.stringify(order), TIMEOUT_S))
  try {
    return await EventStream.open(url, { method: 'POST', body, headMs: GIVE_UP_MS, onEvent })
  } catch (error) {
    if (error instanceof NoStream) rpcResult(JSON.parse(error.body))
    throw error
  }
}

interface Envelope {
  readonly payload: { readonly n?: number; readonly at?: number; readonly message?: string; readonly code?: number }
}

/** The events of one stream: in order, no duplicates, complete if the stream is done, and none after the end. */
export class StreamEvents {
  readonly #ledger: Ledger
  readonly #wanted: number
  #expected = 0
  end: 'done' | 'error' | undefined
  reason = ''

  constructor(ledger: Ledger, wanted: number) {
    this.#ledger = ledger
    this.#wanted = wanted
  }

  /**
   * Returns the time at which the agent sent this numbered event, by this process's clock; `undefined` for other
   * events.
   */
  take({ event, data }: Pick<EventSourceMessage, 'event' | 'data'>): number | undefined {
    const { payload } = JSON.parse(data) as Envelope
    if (this.end !== undefined) this.#ledger.add('outOfOrder', `${event} after the terminal event`)
    if (event === 'task.done') {
      this.end = 'done'
      const missing = this.#wanted - this.#expected
      if (missing > 0) this.#ledger.add('lost', `done without the last ${missing} events`, missing)
    } else if (event === 'task.error') {
      this.end = 'error'
      this.reason = `${payload.code} ${payload.message}`
    } else {
      this.#number(Number(payload.n))
      return (payload.at ?? 0) - performance.timeOrigin
    }
    return undefined
  }

  #number(n: number): void {
    if (n > this.#expected) this.#ledger.add('lost', `event ${n} where ${this.#expected} was due`, n - this.#expected)
    else if (n < this.#expected) this.#ledger.add('doubled', `event ${n} where ${this.#expected} was due`)
    this.#expected = Math.max(this.#expected, n + 1)
  }
}
