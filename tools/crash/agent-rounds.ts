import { setTimeout as pause } from 'node:timers/promises'

import { NatsServer } from '@signalbox/engine-nats/testing'
import type { Random } from '@signalbox/testkit/random'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import type { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { BrokenPromises } from '../load/ledgers.ts'
import { DurableAgent } from './durable-agent.ts'

/** The promises about requests to agents whose answers are kept. */
const PROMISES = {
  agentLost: 'acknowledged requests of agents without an end',
  agentTwice: 'requests that a called agent got twice',
  agentRepeated: 'events shown twice, out of order, or left out without a mark',
  agentUnreasoned: 'tasks that failed without a reason',
  agentChanged: 'answers that changed when they were asked for again',
} as const

export class AgentViolations extends BrokenPromises<keyof typeof PROMISES> {
  constructor() {
    super(PROMISES)
  }
}

export interface AgentRoundsOptions {
  readonly rounds: number
  readonly engine: 'embedded' | 'nats'
  /** The longest time between two disasters, in ms. */
  readonly maxLifeMs: number
  readonly folder: TemporaryFolder
  readonly random: Random
  readonly violations: AgentViolations
  readonly log: (line: string) => void
}

export interface AgentFigures {
  readonly kills: number
  readonly cuts: number
  readonly lessees: number
  /** Requests that ended, by their end. */
  readonly ends: ReadonlyMap<string, number>
  readonly events: number
  readonly gaps: number
}

const CALLERS = 6
const WORKERS = 2
const EVENTS = 40
const PACE_MS = 30
const SETTLE_MS = 120_000
const PUSHED = 'pushed'
const PULLED = 'pulled'
const JSON_BODY = { 'content-type': 'application/json', 'a2a-version': '1.0' }

/** Kills nodes, lessees and connections of agents, while callers read streams of durable agents to their ends. */
export async function agentRounds(options: AgentRoundsOptions): Promise<AgentFigures> {
  const { engine, log, maxLifeMs, random, rounds, violations } = options
  await using agent = await DurableAgent.start(EVENTS, PACE_MS)
  await using nats = engine === 'nats' ? await NatsServer.start() : undefined
  await using nodes = await Nodes.start(options, nats)
  await nodes.register(agent.url)
  const state: State = {
    ended: false,
    violations,
    nodes,
    reading: new Set(),
    counts: { ends: new Map(), events: 0, gaps: 0 },
  }
  const callers = Array.from({ length: CALLERS }, (_, i) => callOn(state, i, i % 2 === 0 ? PUSHED : PULLED))
  const workers = Array.from({ length: WORKERS }, () => new Worker(state))
  const figures = { kills: 0, cuts: 0, lessees: 0 }
  for (let round = 1; round <= rounds; round++) {
    await pause(random.integer(100, maxLifeMs))
    const choice = random.next()
    if (choice < 0.6) {
      figures.kills++
      await nodes.kill(random)
    } else if (choice < 0.8) {
      figures.cuts++
      agent.cut()
    } else {
      figures.lessees++
      random.pick(workers).die()
    }
    if (round % 20 === 0) log(`round ${round}: ${JSON.stringify(Object.fromEntries(state.counts.ends))}`)
  }
  state.ended = true
  await Promise.race([Promise.all(callers), pause(SETTLE_MS)])
  for (const { cursor, messageId } of state.reading.values()) {
    violations.add('agentLost', `${messageId} has no end ${SETTLE_MS / 1000} s after the last disaster, at ${cursor}`)
  }
  for (const worker of workers) worker.stop()
  for (const [messageId, runs] of agent.runs)
    if (runs > 1) violations.add('agentTwice', `${messageId} ran ${runs} times`)
  return { ...figures, ...state.counts }
}

interface State {
  ended: boolean
  readonly violations: AgentViolations
  readonly nodes: Nodes
  /** The readings that go on. */
  readonly reading: Set<Reading>
  readonly counts: { readonly ends: Map<string, number>; events: number; gaps: number }
}

/** One server on the embedded engine, or two on NATS. */
class Nodes implements AsyncDisposable {
  readonly #start: () => Promise<SignalboxServer>
  readonly #servers: (SignalboxServer | undefined)[]

  private constructor(start: () => Promise<SignalboxServer>, servers: SignalboxServer[]) {
    this.#start = start
    this.#servers = servers
  }

  static async start({ engine, folder }: AgentRoundsOptions, nats: NatsServer | undefined): Promise<Nodes> {
    const storePath = folder.join(`agents-${engine}`)
    const env = nats === undefined ? {} : { ENGINE: 'nats', NATS_SERVERS: nats.url }
    const start = () => startSignalbox({ storePath, instrumented: false, env })
    const servers = nats === undefined ? [await start()] : [await start(), await start()]
    return new Nodes(start, servers)
  }

  /** The address of a server that runs. Waits for one. */
  async url(index: number): Promise<string> {
    for (;;) {
      const running = this.#servers.filter((server) => server !== undefined)
      const server = running[index % Math.max(1, running.length)]
      if (server !== undefined) return server.http
      await pause(50)
    }
  }

  async register(url: string): Promise<void> {
    const cards = [
      { agent_id: PUSHED, name: PUSHED, url, a2a: { wire: '1.0', durable: true, offline: 'queue' } },
      { agent_id: PULLED, name: PULLED, a2a: { pull: true, queue: { max_attempts: 100 } } },
    ]
    for (const card of cards) {
      const response = await fetch(`${await this.url(0)}/agents/register`, {
        method: 'POST',
        headers: JSON_BODY,
        body: JSON.stringify(card),
      })
      if (!response.ok) throw new Error(await response.text())
    }
  }

  async kill(random: Random): Promise<void> {
    const at = random.integer(0, this.#servers.length - 1)
    const server = this.#servers[at]
    this.#servers[at] = undefined
    await server?.process.kill()
    this.#servers[at] = await this.#start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) await server?.process.kill()
  }
}

/** Sends one request after another to an agent, and reads each stream to its end over every disaster. */
async function callOn(state: State, caller: number, agentId: string): Promise<void> {
  for (let n = 1; !state.ended; n++) {
    const reading = new Reading(state, `${agentId}-${caller}-${n}`)
    state.reading.add(reading)
    for (let attempt = 0; !reading.isOver; attempt++) {
      if (attempt > 0) await pause(100)
      await readOnce(state, agentId, reading, caller + attempt)
    }
    await askAgain(state, agentId, reading, caller)
    state.reading.delete(reading)
    const { counts } = state
    counts.ends.set(reading.end, (counts.ends.get(reading.end) ?? 0) + 1)
    counts.events += reading.events
    counts.gaps += reading.gaps
  }
}

async function readOnce({ nodes }: State, agentId: string, reading: Reading, node: number): Promise<void> {
  const { cursor, messageId } = reading
  const message = { messageId, role: 'ROLE_USER', parts: [{ text: 'go' }] }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } })
  const resumed = cursor === undefined ? {} : { 'last-event-id': cursor }
  try {
    const response = await fetch(`${await nodes.url(node)}/a2a/${agentId}`, {
      method: 'POST',
      headers: { ...JSON_BODY, ...resumed },
      body,
      signal: AbortSignal.timeout(60_000),
    })
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      const end = text.lastIndexOf('\n\n')
      if (end === -1) continue
      for (const event of text.slice(0, end).split('\n\n')) reading.take(event)
      text = text.slice(end + 2)
    }
    if (text.startsWith('{')) reading.refused(text)
  } catch {
    // A node was killed: the reading goes on with its cursor, or its message is sent again.
  }
}

/** Sends a message once more as a call. Its task has the state that the stream had. */
async function askAgain(
  { nodes, violations }: State,
  agentId: string,
  { end, messageId }: Reading,
  node: number,
): Promise<void> {
  if (!FINAL.test(end)) return
  const message = { messageId, role: 'ROLE_USER', parts: [{ text: 'go' }] }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } })
  try {
    const response = await fetch(`${await nodes.url(node)}/a2a/${agentId}`, {
      method: 'POST',
      headers: JSON_BODY,
      body,
    })
    const { result } = (await response.json()) as { result?: { task?: ShownTask } }
    const state = result?.task?.status.state
    if (state !== undefined && state !== end) violations.add('agentChanged', `${messageId}: ${end}, then ${state}`)
  } catch {
    // A node was killed.
  }
}

interface ShownResult {
  readonly task?: ShownTask
  readonly statusUpdate?: {
    readonly status: { readonly state: string }
    readonly metadata?: { readonly 'signalbox.reason'?: string; readonly 'signalbox.delivery'?: object }
  }
  readonly artifactUpdate?: { readonly artifact: { readonly parts: readonly { readonly text: string }[] } }
}

interface ShownTask {
  readonly status: { readonly state: string }
  readonly artifacts?: readonly { readonly parts: readonly unknown[] }[]
}

interface ShownError {
  readonly message: string
  readonly data?: readonly { readonly reason?: string }[]
}

const FINAL = /COMPLETED|FAILED|CANCELED|REJECTED/

/** One logical reading of a stream, over all its connections. */
class Reading {
  readonly #state: State
  readonly messageId: string
  cursor: string | undefined
  end = ''
  events = 0
  gaps = 0
  /** The text of the next artifact. */
  #next = 1

  constructor(state: State, messageId: string) {
    this.#state = state
    this.messageId = messageId
  }

  get isOver(): boolean {
    return this.end !== ''
  }

  take(event: string): void {
    const data = /^data: (.*)$/m.exec(event)?.[1]
    if (data === undefined || this.isOver) return
    const { error, result } = JSON.parse(data) as { result?: ShownResult; error?: ShownError }
    if (error !== undefined) {
      this.#failed(error)
      return
    }
    this.events++
    this.#checkOrder(/^id: (.*)$/m.exec(event)?.[1])
    if (result?.task !== undefined) this.#takeTask(result.task)
    const text = result?.artifactUpdate?.artifact.parts[0]?.text
    if (text !== undefined) {
      if (Number(text) !== this.#next) this.#repeated(`event ${text} after ${this.#next - 1}`)
      this.#next = Number(text) + 1
    }
    const { metadata, status } = result?.statusUpdate ?? {}
    // Another lessee begins again.
    if (metadata?.['signalbox.delivery'] !== undefined) this.#next = 1
    if (status !== undefined && FINAL.test(status.state)) this.#finish(status.state, metadata?.['signalbox.reason'])
  }

  /** Takes an answer that is no stream. */
  refused(text: string): void {
    const { error } = JSON.parse(text) as { error?: ShownError }
    if (error !== undefined) this.#failed(error)
  }

  #takeTask({ artifacts, status }: ShownTask): void {
    const count = artifacts?.[0]?.parts.length ?? 0
    if (this.events > 1) this.gaps++
    if (count + 1 < this.#next) this.#repeated(`a task with ${count} parts after ${this.#next - 1}`)
    this.#next = count + 1
    if (FINAL.test(status.state)) this.#finish(status.state, undefined)
  }

  /** Sequences have no holes. */
  #checkOrder(id: string | undefined): void {
    const [run = '', sequence = ''] = id?.split('.') ?? []
    const [runBefore = run, before = '0'] = this.cursor?.split('.') ?? []
    if (run === '' || run !== runBefore || Number(sequence) !== Number(before) + 1) {
      this.#repeated(`the id ${id} after ${this.cursor}`)
    }
    this.cursor = id ?? this.cursor
  }

  #failed({ data, message }: ShownError): void {
    const reason = data?.[0]?.reason ?? ''
    // The node stops, or has not seen the registration yet: the request is sent again.
    if (['BROKER_UNAVAILABLE', 'AGENT_TIMEOUT', 'STREAM_INTERRUPTED', 'SHUTTING_DOWN'].includes(reason)) return
    if (reason === '') this.#state.violations.add('agentUnreasoned', `${this.messageId}: ${message}`)
    this.end = reason || 'error'
  }

  #finish(state: string, reason: string | undefined): void {
    if (state.includes('COMPLETED') && this.#next !== EVENTS + 1)
      this.#repeated(`the end after ${this.#next - 1} of ${EVENTS}`)
    if (state.includes('FAILED') && reason === undefined) this.#state.violations.add('agentUnreasoned', this.messageId)
    this.end = reason ?? state
  }

  #repeated(what: string): void {
    this.#state.violations.add('agentRepeated', `${this.messageId}: ${what}`)
  }
}

interface LeasedItem {
  readonly receipt: string
}

/** A pull agent: works on one request after another, until it dies, and begins again. */
class Worker {
  readonly #state: State
  #life = new AbortController()
  #isStopped = false

  constructor(state: State) {
    this.#state = state
    void this.#live()
  }

  /** Forgets the request that it works on. */
  die(): void {
    this.#life.abort()
  }

  stop(): void {
    this.#isStopped = true
    this.die()
  }

  async #live(): Promise<void> {
    while (!this.#isStopped) {
      this.#life = new AbortController()
      try {
        while (!this.#life.signal.aborted) await this.#workOnce(this.#life.signal)
      } catch {
        await pause(50)
      }
    }
  }

  async #workOnce(signal: AbortSignal): Promise<void> {
    const leased = (await this.#post('lease', { wait_seconds: 5, lease_seconds: 10 }, signal)) as {
      items: LeasedItem[]
    }
    for (const { receipt } of leased.items) {
      for (let n = 0; n <= EVENTS; n++) {
        await pause(PACE_MS)
        await this.#write(receipt, n, signal)
      }
    }
  }

  /** Sends an event until it is accepted: a repeated call changes nothing. */
  async #write(receipt: string, n: number, signal: AbortSignal): Promise<void> {
    const artifact = { artifactId: 'a', parts: [{ text: String(n + 1) }] }
    const event =
      n < EVENTS
        ? { artifactUpdate: { artifact, append: true } }
        : { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }
    for (;;) {
      try {
        await this.#post('events', { receipt, offset: n, events: [event], lease_seconds: 10 }, signal)
        return
      } catch (error) {
        if (signal.aborted || error instanceof Refused) throw error
        await pause(50)
      }
    }
  }

  async #post(route: string, body: object, signal: AbortSignal): Promise<unknown> {
    const response = await fetch(`${await this.#state.nodes.url(0)}/agents/${PULLED}/inbox/${route}`, {
      method: 'POST',
      headers: JSON_BODY,
      body: JSON.stringify(body),
      signal,
    })
    if (response.status === 409) throw new Refused(await response.text())
    if (!response.ok) throw new Error(await response.text())
    return response.json()
  }
}

/** The lease is another's. */
class Refused extends Error {
  override readonly name = 'Refused'
}
