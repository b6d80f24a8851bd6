import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request } from 'node:http'

import { afterAll, beforeAll } from 'vitest'

import type { AgentBehavior, TestAgent } from './agent.ts'
import { startAgent } from './agent.ts'
import type { Host, HostOptions } from './host.ts'
import { openHost } from './host.ts'

/** JSON of any shape: tests look into what they expect, and fail where it is not there. */
// oxlint-disable-next-line typescript/no-explicit-any -- see above
type Loose = any

interface ReceivedEvent {
  readonly event: string
  /** The `data:` line, as it came. */
  readonly data: string
  /** The same, parsed. */
  readonly envelope: { readonly stream_id: string; readonly type: string; readonly payload: Loose }
}

const REQUEST = '{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{}}'

/** A client of a stream, on a connection of its own. */
export class StreamClient {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly events: ReceivedEvent[] = []
  readonly comments: string[] = []
  /** What is no event stream. */
  text = ''
  /** Resolves when the response has ended, with whether it came to its proper end. */
  readonly ended: Promise<boolean>
  readonly #response: IncomingMessage
  readonly #waiting: { readonly enough: () => boolean; readonly resolve: () => void }[] = []
  #over = false

  private constructor(response: IncomingMessage, paused: boolean) {
    this.#response = response
    this.status = response.statusCode ?? 0
    this.headers = response.headers
    this.ended = new Promise((resolve) => {
      response.once('close', () => {
        this.#over = true
        this.#wake()
        resolve(response.complete)
      })
    })
    response.on('error', () => {})
    let rest = ''
    response.setEncoding('utf8')
    if (paused) response.pause()
    response.on('data', (text: string) => {
      if (!this.isStream) {
        this.text += text
        return
      }
      const blocks = (rest + text).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) this.#block(block)
      this.#wake()
    })
    if (paused) response.pause()
  }

  /** POSTs, and resolves when the head of the answer is there. @param paused Read nothing of it yet. */
  static open(url: string, { body = REQUEST, paused = false } = {}): Promise<StreamClient> {
    return new Promise((resolve, reject) => {
      const outgoing = request(url, { method: 'POST', agent: false, headers: { 'content-type': 'application/json' } })
      outgoing.on('error', reject)
      outgoing.on('response', (response) => resolve(new StreamClient(response, paused)))
      outgoing.end(body)
    })
  }

  get isStream(): boolean {
    return this.headers['content-type'] === 'text/event-stream'
  }

  get over(): boolean {
    return this.#over
  }

  /** Resolves when so many events are there; rejects when the stream ends before. */
  async seen(count: number): Promise<readonly ReceivedEvent[]> {
    await this.#until(() => this.events.length >= count)
    if (this.events.length < count) throw new Error(`the stream ended after ${this.events.length} of ${count} events`)
    return this.events
  }

  /** All events, once the response has ended. */
  async all(): Promise<readonly ReceivedEvent[]> {
    await this.ended
    return this.events
  }

  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  /** Goes away. */
  cut(): void {
    this.#response.destroy()
  }

  #until(enough: () => boolean): Promise<void> {
    if (enough() || this.#over) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push({ enough, resolve }))
  }

  #wake(): void {
    for (const waiter of this.#waiting.slice()) {
      if (!this.#over && !waiter.enough()) continue
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
      waiter.resolve()
    }
  }

  #block(block: string): void {
    if (block.startsWith(':')) {
      this.comments.push(block.slice(1).trim())
      return
    }
    const lines = block.split('\n')
    const field = (name: string): string =>
      lines
        .filter((line) => line.startsWith(`${name}: `))
        .map((line) => line.slice(name.length + 2))
        .join('\n')
    const data = field('data')
    this.events.push({ event: field('event'), data, envelope: JSON.parse(data) })
  }
}

const END: AgentBehavior = (response) => void response.end()

/** One agent and one host for the tests of a file that differ only in what the agent does. */
export function sharedBench(options: HostOptions = {}): {
  readonly agent: () => TestAgent
  readonly host: () => Host
  /** All events that a client gets of a stream with this agent. */
  readonly events: (behavior: AgentBehavior) => Promise<readonly ReceivedEvent[]>
} {
  let agent: TestAgent | undefined
  let host: Host | undefined
  let behavior = END
  beforeAll(async () => {
    agent = await startAgent((response, request) => behavior(response, request), afterAll)
    host = await openHost(agent.url, { ...options, cleanUp: afterAll })
  })
  return {
    agent: () => agent!,
    host: () => host!,
    async events(next) {
      behavior = next
      const client = await StreamClient.open(host!.base)
      return client.all()
    },
  }
}
