import { Buffer } from 'node:buffer'
import { readdirSync } from 'node:fs'

import { NatsServer } from '@signalbox/engine-nats/testing'
import { askJson, HttpError, serveSockets } from '@signalbox/testkit/loopback'
import { McpClient } from '@signalbox/testkit/mcp-client'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import type { Arbitrary } from 'fast-check'

import { BrokenPromise, HonestClient } from '../../honest-client.ts'
import { textOf } from '../grammar/pieces.ts'
import type { OpenTarget, Target } from '../target.ts'
import { Finding, MAX_INPUT_MS } from '../target.ts'
import { causeIn, FuzzedServer } from './fuzzed-server.ts'
import type { HostileReply } from './hostile-agent.ts'
import { HostileAgent } from './hostile-agent.ts'
import type { HttpStep, Places, RawStep, Sending, Session, Step } from './session.ts'
import { checkAnswer, exchange, filled, isWholeAnswer, learned } from './session.ts'

/** A server gets more time than a parser. */
const WEIGHT = 10

/** The number of sessions between two checks of the honest client, and the time-out of its calls, in milliseconds. */
const HONEST_EVERY = 25
const HONEST_MS = 30_000

/** The number of sessions before the heap's level is measured, and the allowed growth after it, in bytes. */
const WARM_UP = 300
const HEAP_SLACK = 32 * 1_048_576

/** Events of 200 kB in one events store from the start. */
const FILLED = 30

/**
 * The number of repetitions of a session that blocked the loop for too long: a single case may be the compiler or the
 * collector.
 */
const SECOND_LOOKS = 2

/** A running server, with one kind of sessions. */
export function serverTarget(name: string, about: string, input: Arbitrary<Session>): Target {
  return { name, about, weight: WEIGHT, input, open: () => OpenServer.open() }
}

/** A server over a real nats-server without other clients. */
export function natsTarget(name: string, about: string, input: Arbitrary<Session>): Target {
  return { name, about, weight: WEIGHT, input, open: () => OpenServer.open(true) }
}

class OpenServer implements OpenTarget {
  readonly #held: AsyncDisposableStack
  readonly #folder: TemporaryFolder
  readonly #agent: HostileAgent
  readonly #agentUrl: string
  readonly #honest = new HonestClient({
    queue: 'honest.queue',
    store: 'honest.store',
    sends: 4,
    receiveAt: 60,
    waitSeconds: 1,
    timeoutMs: HONEST_MS,
  })
  #server: FuzzedServer
  #sessions = 0
  #filled = false
  #places: Places = { http: '', api: '', agent: '', receipt: 'none', request: 'none', cursor: 'none' }
  #level: number | undefined

  readonly #engine: Readonly<Record<string, string>>

  private constructor(
    held: AsyncDisposableStack,
    folder: TemporaryFolder,
    agent: HostileAgent,
    agentUrl: string,
    server: FuzzedServer,
    engine: Readonly<Record<string, string>>,
  ) {
    this.#held = held
    this.#folder = folder
    this.#agent = agent
    this.#agentUrl = agentUrl
    this.#server = server
    this.#engine = engine
  }

  static async open(overNats = false): Promise<OpenServer> {
    await using held = new AsyncDisposableStack()
    const folder = held.use(await TemporaryFolder.create('fuzz-server'))
    const agent = new HostileAgent()
    const { url } = held.use(await serveSockets((socket) => agent.serve(socket)))
    const nats = overNats ? held.use(await NatsServer.start()) : undefined
    const engine: Record<string, string> = nats === undefined ? {} : { ENGINE: 'nats', NATS_SERVERS: nats.url }
    const server = await FuzzedServer.start(folder.path, engine)
    return new OpenServer(held.move(), folder, agent, url, server, engine)
  }

  check(input: unknown): Promise<void> {
    // This target wrote the inputs that are replayed from files.
    return this.#asFinding(() => this.#check(input as Session))
  }

  /**
   * Checks the properties that show only at the end: no lost message, no leaked memory, no file elsewhere, and a store
   * that opens again.
   */
  settle(): Promise<void> {
    return this.#asFinding(() => this.#settle())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
    await this.#held[Symbol.asyncDispose]()
  }

  /** No failure of a check may end the run: the finding shows whether the server has ended, or a call failed. */
  async #asFinding(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (error instanceof Finding) throw error
      if (error instanceof BrokenPromise) throw new Finding(error.kind, error.message)
      if (this.#server.ended) throw new Finding('died', `the server ended: ${this.#server.ending}`)
      throw new Finding('answer', `a call of the target failed: got ${String(error).slice(0, 500)}`, { cause: error })
    }
  }

  async #check(session: Session): Promise<void> {
    if (this.#server.ended) await this.#restart()
    if (!this.#filled) await this.#fill()
    const checked = this.#sessions++ % HONEST_EVERY === 0
    if (checked) await this.#registerAgents()
    if (this.#sessions === WARM_UP) this.#level = await this.#server.bytesKept()
    await this.#run(session)
    // After the session, so that a failure of the honest client is stored with the session that preceded it.
    if (checked) await this.#honest.work(this.#server.http)
  }

  async #settle(): Promise<void> {
    if (this.#server.ended) await this.#restart()
    await this.#honest.settle(this.#server.http)
    if (this.#level !== undefined) await this.#checkHeap(this.#level)
    await this.#honest.work(this.#server.http)
    await this.#server.kill()
    await this.#restart()
    await this.#honest.settle(this.#server.http)
    const strangers = readdirSync(this.#folder.path, { recursive: true, encoding: 'utf8' }).filter(
      (file) => !/^(?:home|tmp|store)$/.test(file) && !file.startsWith('store/'),
    )
    if (strangers.length > 0)
      throw new Finding('file', `files outside the store: got ${strangers.slice(0, 5).join(', ')}`)
  }

  async #run(session: Session): Promise<void> {
    let held = Number.POSITIVE_INFINITY
    for (let look = 0; look <= SECOND_LOOKS && held > MAX_INPUT_MS; look++) {
      await this.#play(session)
      const heldMs = this.#server.ended ? undefined : await this.#server.loopHeldMs()
      if (heldMs === undefined) throw new Finding('died', `the server ended: ${this.#server.ending}`)
      held = Math.min(held, heldMs)
      const [error] = this.#server.takeErrors()
      if (error !== undefined)
        throw new Finding('logged', `an error is logged: ${causeIn(error)}: got ${error.slice(0, 1_500)}`)
    }
    if (held > MAX_INPUT_MS) throw new Finding('blocked', `the event loop is held for ${Math.round(held)} ms`)
  }

  async #play({ parallel, steps }: Session): Promise<void> {
    this.#places = { ...this.#places, http: this.#server.http, api: this.#server.api, agent: this.#agentUrl }
    const replies = new Map<string, HostileReply>()
    for (const [i, step] of steps.entries())
      if (step.kind === 'http' && step.reply !== null) replies.set(String(i), step.reply)
    this.#agent.prepare(replies)
    if (parallel) await Promise.all(steps.map((step, i) => this.#take(step, String(i))))
    else for (const [i, step] of steps.entries()) await this.#take(step, String(i))
  }

  async #take(step: Step, key: string): Promise<void> {
    const places = this.#places
    const received = await exchange(
      places[step.listener],
      step.kind === 'http' ? sendingOf(step, places, key) : rawSending(step, places, key),
    )
    this.#places = learned(this.#places, received.toString('utf8'))
    checkAnswer(step.kind === 'http' ? `${step.method.slice(0, 10)} ${routeOf(step.path)}` : 'a raw request', received)
  }

  async #checkHeap(level: number): Promise<void> {
    let kept = await this.#server.bytesKept()
    // Calls to agents whose callers have disconnected continue for a second.
    for (let look = 0; look < 10 && kept > level + HEAP_SLACK; look++) {
      await new Promise((resolve) => setTimeout(resolve, 500))
      kept = await this.#server.bytesKept()
    }
    if (kept > level + HEAP_SLACK) {
      throw new Finding('heap', `memory is not released: got ${kept} bytes, ${level} after the start`)
    }
  }

  async #restart(): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
    try {
      this.#server = await FuzzedServer.start(this.#folder.path, this.#engine)
    } catch (error) {
      throw new Finding('gone', `the server does not start again: got ${String(error).slice(0, 1_000)}`, {
        cause: error,
      })
    }
    this.#level = undefined
    this.#sessions = 0
    await this.#registerAgents()
    await this.#server.loopHeldMs()
  }

  /** Stores more than sockets buffer, so that subscribers that read nothing block. */
  async #fill(): Promise<void> {
    await this.#registerAgents()
    const client = await McpClient.open(this.#server.http)
    for (let i = 0; i < FILLED; i++)
      await client.call('events_store_publish', { channel: 'fuzz.a', body: 'x'.repeat(200_000) })
    client.close()
    this.#filled = true
    await this.#server.loopHeldMs()
  }

  async #registerAgents(): Promise<void> {
    for (const id of ['agent-one', 'agent-two']) {
      const body = { agent_id: id, name: id, url: this.#agentUrl }
      await askJson(`${this.#server.http}/agents/register`, { body, timeoutMs: HONEST_MS }).catch((error: unknown) => {
        // The limit of agents is reached: inputs have registered them.
        if (!(error instanceof HttpError && error.text.includes('AGENT_LIMIT'))) throw error
      })
    }
  }
}

function requestBytes(step: HttpStep, places: Places, key: string): Buffer {
  const body = Buffer.from(filled(textOf(step.body), places, key), step.encoding)
  const { host } = new URL(places[step.listener])
  const lines = [
    `${step.method} ${filled(step.path, places, key)} HTTP/1.1`,
    `Host: ${host}`,
    'Connection: close',
    ...step.headers.map(([name, value]) => `${name}: ${value}`),
    ...(body.length > 0 || step.method === 'POST' ? [`Content-Length: ${body.length}`] : []),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body])
}

function sendingOf(step: HttpStep, places: Places, key: string): Sending {
  const bytes = requestBytes(step, places, key)
  const half = Math.ceil(bytes.length / 2)
  const { manner, patienceMs } = step
  const sending: Sending = { writes: [bytes], pauseMs: 0, end: 'wait', patienceMs, complete: isWholeAnswer }
  switch (manner) {
    case 'stalled':
      return { ...sending, reads: false }
    case 'halting':
      return { ...sending, writes: [bytes.subarray(0, half), bytes.subarray(half)], pauseMs: 5 }
    case 'aborting':
      return { ...sending, writes: [bytes.subarray(0, half)], end: 'reset' }
    case 'half-closed':
      return { ...sending, end: 'finish' }
    default:
      return sending
  }
}

function rawSending({ writes, pauseMs, end, patienceMs }: RawStep, places: Places, key: string): Sending {
  const bytes = writes.map((pieces) => Buffer.from(filled(textOf(pieces), places, key), 'latin1'))
  return { writes: bytes, pauseMs, end, patienceMs }
}

/** Enough of a path to distinguish findings. */
function routeOf(path: string): string {
  return path.split('?', 1)[0]?.split('/').slice(0, 4).join('/').slice(0, 60) ?? ''
}
