import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { MeasuredProcess } from '@signalbox/testkit/measured-process'

import { Ledger } from '../ledgers.ts'
import type { Load, Scene } from './clients.ts'
import { ask, CALL_MS, Clients, Refused } from './clients.ts'

/** The `CONNECTORSA2_A_AGENT_TTL_SECONDS` of the nodes. */
export const AGENT_TTL_S = 120
const HEARTBEAT_CLIENTS = 3
const HEARTBEAT_PAUSE_MS = 150
/** The number of heartbeats between two registrations. */
const NEWCOMER_EVERY = 40
/** More agents would be silent for too long while calls fail: three clients send all heartbeats. */
const MAX_AGENTS = 100
/** The age of an acknowledged heartbeat from which an agent may have expired: nodes share heartbeats every fifth of the TTL. */
const MAY_EXPIRE_MS = AGENT_TTL_S * 800
/** The time for the nodes to synchronize at the end, in milliseconds. */
const AGREE_MS = 30_000

interface Listed {
  readonly agent_id: string
}

/** Agents that register and heartbeat; every node must know each one from then on. */
export class RegistrationLoad implements Load {
  readonly ledger = new Ledger('registration')
  readonly ledgers = [this.ledger]
  readonly #scene: Scene
  readonly #clients: Clients
  readonly #urls: readonly string[]
  readonly #registered: string[] = []
  /** The time at which the last acknowledged heartbeat or registration of each agent was sent, monotonic. */
  readonly #heardAt = new Map<string, number>()
  #beats = 0
  #newcomers = 0
  #turn = 0

  constructor(scene: Scene, agentUrls: readonly string[]) {
    this.#scene = scene
    this.#urls = agentUrls
    this.#clients = new Clients(this.ledger, scene)
  }

  async start(): Promise<void> {
    for (const [i, agent] of AGENTS.entries()) await this.#register(agent, this.#urls[i] ?? '')
    for (let i = 0; i < HEARTBEAT_CLIENTS; i++)
      this.#clients.add(`${i}`, { pauseMs: HEARTBEAT_PAUSE_MS }, () => this.#next())
  }

  async #next(): Promise<void> {
    const beat = this.#beats++
    if (beat % NEWCOMER_EVERY === 0 && this.#registered.length < MAX_AGENTS) {
      await this.#register(`chaos-more-${this.#newcomers++}`, this.#urls[0] ?? '')
    } else await this.#heartbeat(this.#scene.front, this.#nextAgent())
  }

  /** Heartbeats run in sequence, for any number of agents: no agent may be silent until it expires. */
  #nextAgent(): string {
    this.#turn = (this.#turn + 1) % this.#registered.length
    return this.#registered[this.#turn] ?? AGENTS[0]
  }

  async #register(agent: string, url: string): Promise<void> {
    const sentAt = performance.now()
    await ask(`${this.#scene.front}/agents/register`, CALL_MS, { agent_id: agent, name: agent, url })
    this.#heardAt.set(agent, sentAt)
    if (!this.#registered.includes(agent)) this.#registered.push(agent)
  }

  async #heartbeat(base: string, agent: string): Promise<void> {
    const sentAt = performance.now()
    try {
      await ask(`${base}/agents/heartbeat`, CALL_MS, { agent_id: agent })
      this.#heardAt.set(agent, sentAt)
    } catch (error) {
      if (error instanceof Refused && error.code === 'AGENT_NOT_FOUND') {
        if (this.#isLive(agent, sentAt)) {
          this.ledger.add('lost', `a heartbeat of ${agent} failed, although the agent is registered`)
        }
        // As an agent does that learns of its expiry.
        await this.#register(agent, this.#urls[AGENTS.findIndex((one) => one === agent)] ?? this.#urls[0] ?? '')
      }
      throw error
    }
  }

  async probe(node: string): Promise<void> {
    await this.#heartbeat(node, AGENTS[0])
    const missing = await this.#missing(node)
    if (missing.length > 0) throw new Error(`not known at this node: ${missing.join(', ')}`)
  }

  stop(): Promise<void> {
    return this.#clients.stop()
  }

  async settle(nodes: readonly string[]): Promise<void> {
    for (const node of nodes) {
      let missing = await this.#missing(node)
      for (let waited = 0; missing.length > 0 && waited < AGREE_MS; waited += 100) {
        await pause(100)
        missing = await this.#missing(node)
      }
      for (const agent of missing) this.ledger.add('lost', `${agent} is registered and not known at ${node}`)
    }
  }

  /** Returns `true` if an agent cannot have expired at this time. */
  #isLive(agent: string, atMs: number): boolean {
    return atMs - (this.#heardAt.get(agent) ?? -Infinity) < MAY_EXPIRE_MS
  }

  async #missing(node: string): Promise<readonly string[]> {
    const now = performance.now()
    const due = this.#registered.filter((agent) => this.#isLive(agent, now))
    const listed = (await ask(`${node}/agents`, CALL_MS)) as readonly Listed[]
    const known = new Set(listed.map(({ agent_id }) => agent_id))
    return due.filter((agent) => !known.has(agent))
  }
}

const CALL_CLIENTS = 4
const CALL_PAUSE_MS = 200
/** `params.configuration.timeout`, and the time that the gateway adds to it, in seconds. */
const TIMEOUT_S = 5
const GATEWAY_BUFFER_S = 10
/** The client waits for a frozen node, to distinguish calls that hang from late ones; in milliseconds. */
const GIVE_UP_MS = 60_000

/** Calls `message/send` of agents in sequence. */
export class AgentCallLoad implements Load {
  readonly ledger = new Ledger('agent call')
  readonly ledgers = [this.ledger]
  readonly #scene: Scene
  readonly #clients: Clients
  #next = 0

  constructor(scene: Scene) {
    this.#scene = scene
    this.#clients = new Clients(this.ledger, scene)
  }

  async start(): Promise<void> {
    const boundMs = (TIMEOUT_S + GATEWAY_BUFFER_S) * 1000
    for (let i = 0; i < CALL_CLIENTS; i++) {
      this.#clients.add(`${i}`, { pauseMs: CALL_PAUSE_MS, boundMs }, () => this.#call(this.#scene.front, GIVE_UP_MS))
    }
  }

  async #call(base: string, giveUpMs: number): Promise<void> {
    const n = this.#next++
    const result = await callAgent(base, AGENTS[n % AGENTS.length] ?? AGENTS[0], `c${n}`, TIMEOUT_S, giveUpMs)
    if (JSON.stringify(result) !== JSON.stringify({ echo: `c${n}` })) {
      this.ledger.add('lost', `c${n} got the answer ${JSON.stringify(result).slice(0, 100)}`)
    }
  }

  probe(node: string): Promise<void> {
    return this.#call(node, CALL_MS)
  }

  stop(): Promise<void> {
    return this.#clients.stop()
  }

  async settle(): Promise<void> {}
}

/** The agents for streams and calls. */
export const AGENTS = ['chaos-one', 'chaos-two'] as const

/** The agents' processes, which no disaster strikes. */
export class AgentProcesses implements AsyncDisposable {
  readonly urls: readonly string[]
  readonly #processes: readonly MeasuredProcess[]

  private constructor(processes: readonly MeasuredProcess[], urls: readonly string[]) {
    this.#processes = processes
    this.urls = urls
  }

  static async start(): Promise<AgentProcesses> {
    const script = fileURLToPath(new URL('../agent.ts', import.meta.url))
    const processes = AGENTS.map(() => new MeasuredProcess({ script, instrumented: false }))
    const urls = processes.map((process) => process.line((line) => /^listening on (\S+)$/.exec(line)?.[1]))
    return new AgentProcesses(processes, await Promise.all(urls))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process[Symbol.asyncDispose]()))
  }
}

/** Returns the JSON-RPC request for a message of one text. */
export function agentRequest(method: 'message/send' | 'message/stream', text: string, timeoutSeconds: number) {
  const message = { kind: 'message', role: 'user', messageId: 'm', parts: [{ kind: 'text', text }] }
  return { jsonrpc: '2.0', id: 1, method, params: { message, configuration: { timeout: timeoutSeconds } } }
}

interface RpcAnswer {
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string }
}

/** @throws Refused for a JSON-RPC error */
export function rpcResult(answer: unknown): unknown {
  const { result, error } = answer as RpcAnswer
  if (error !== undefined) throw new Refused(`${error.code} ${error.message}`, error.message)
  return result
}

/** Calls an agent through the gateway at this address. @throws Refused, or another Error if there was no answer */
async function callAgent(base: string, agent: string, text: string, timeoutSeconds: number, giveUpMs: number) {
  return rpcResult(await ask(`${base}/a2a/${agent}`, giveUpMs, agentRequest('message/send', text, timeoutSeconds)))
}
