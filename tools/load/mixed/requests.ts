import { EventStream } from '@signalbox/testkit/event-stream'

import { Ledger } from '../ledgers.ts'
import type { Frame, Load, Scene } from './clients.ts'
import { ask, bodyOf, CALL_MS, callTool, Clients, RovingMcp } from './clients.ts'

const CLIENTS = 4
const SUBSCRIBERS = 3
const PAUSE_MS = 120
/** The time-out of the callers, in seconds. */
const TIMEOUT_S = 8
/** The client waits for a frozen node, to distinguish calls that hang from late ones; in milliseconds. */
const GIVE_UP_MS = 60_000

type RequestType = 'commands' | 'queries'

/** Commands or queries by MCP, which subscribers at `/ce` answer. */
export class RequestLoad implements Load {
  readonly ledger: Ledger
  readonly ledgers: readonly Ledger[]
  readonly #scene: Scene
  readonly #type: RequestType
  readonly #clients: Clients
  readonly #subscribers: Clients
  readonly #done = new Set<string>()
  #next = 0

  constructor(scene: Scene, type: RequestType) {
    this.#scene = scene
    this.#type = type
    this.ledger = new Ledger(type === 'commands' ? 'command' : 'query')
    this.ledgers = [this.ledger]
    this.#clients = new Clients(this.ledger, scene)
    this.#subscribers = new Clients(this.ledger, scene)
  }

  async start(): Promise<void> {
    const { front } = this.#scene
    for (let i = 0; i < SUBSCRIBERS; i++) this.#subscribers.beside(() => this.#subscribe())
    for (let i = 0; i < CLIENTS; i++) {
      const mcp = new RovingMcp(front, this.#clients.stopped)
      const call: ToolCall = (name, args) => mcp.call(name, args, GIVE_UP_MS)
      this.#clients.add(`${i}`, { pauseMs: PAUSE_MS, boundMs: TIMEOUT_S * 1000 }, () => this.#request(call))
    }
  }

  async #request(call: ToolCall): Promise<void> {
    const id = `r${this.#next++}`
    const tool = this.#type === 'commands' ? 'command_send' : 'query_send'
    const { text } = await call(tool, { channel: CHANNELS[this.#type], body: id, timeout_seconds: TIMEOUT_S })
    if (!this.#done.has(id)) this.ledger.add('lost', `${id} was reported as done, but no subscriber received it`)
    if (this.#type === 'queries' && text !== JSON.stringify({ echo: id })) {
      this.ledger.add('lost', `${id} got the answer ${text.slice(0, 100)}`)
    }
  }

  /** Subscribes once and answers every request. */
  async #subscribe(): Promise<void> {
    const url = `${this.#scene.front}/ce/subscribe/${this.#type}?channel=${CHANNELS[this.#type]}`
    const stream = await EventStream.open(url, {
      headMs: CALL_MS,
      signal: this.#subscribers.stopped,
      onEvent: ({ event, data }) => {
        if (event !== 'error') this.#answer(JSON.parse(data) as Frame)
      },
    })
    await stream.closed
  }

  #answer(frame: Frame): void {
    const data = bodyOf(frame)
    if (this.#done.has(data)) this.ledger.add('doubled', `${data} reached subscribers twice`)
    this.#done.add(data)
    const event = { specversion: '1.0', id: data, source: '/chaos', type: 'answer', data: { echo: data } }
    const url = `${this.#scene.front}/ce/send/response?request_id=${frame.brokerrequestid}`
    // The requester detects an answer that fails.
    ask(url, CALL_MS, event, 'application/cloudevents+json').catch(() => {})
  }

  async probe(node: string): Promise<void> {
    await this.#request((name, args) => callTool(node, name, args, CALL_MS))
  }

  async stop(): Promise<void> {
    await this.#clients.stop()
    await this.#subscribers.stop()
  }

  async settle(): Promise<void> {}
}

const CHANNELS: Readonly<Record<RequestType, string>> = { commands: 'chaos.orders', queries: 'chaos.questions' }

type ToolCall = (name: string, args: Readonly<Record<string, unknown>>) => ReturnType<RovingMcp['call']>
