import { setTimeout as pause } from 'node:timers/promises'

import { AGENTS } from './agents.ts'
import { Ledger } from './ledger.ts'
import { ask, Refused } from './calls.ts'
import type { Load, Scene } from './load.ts'
import { CALL_MS, Clients } from './load.ts'

/** The nodes run with this as `CONNECTORSA2_A_AGENT_TTL_SECONDS`. */
export const AGENT_TTL_S = 120
const CLIENTS = 3
const PAUSE_MS = 150
/** How often one more agent is registered, in heartbeats. */
const NEWCOMER_EVERY = 40
/** How long the nodes may take to tell each other at the end, in milliseconds. */
const AGREE_MS = 30_000

interface Listed {
  readonly agent_id: string
}

/** Agents that register, heartbeat, and must be known at every node from then on. */
export class RegistrationLoad implements Load {
  readonly ledger = new Ledger('registration')
  readonly ledgers = [this.ledger]
  readonly #scene: Scene
  readonly #clients: Clients
  readonly #urls: readonly string[]
  readonly #registered: string[] = []
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
    for (let i = 0; i < CLIENTS; i++) this.#clients.add(`${i}`, { pauseMs: PAUSE_MS }, () => this.#next())
  }

  async #next(): Promise<void> {
    const beat = this.#beats++
    if (beat % NEWCOMER_EVERY === 0) await this.#register(`chaos-more-${this.#newcomers++}`, this.#urls[0] ?? '')
    else await this.#heartbeat(this.#scene.front, this.#nextAgent())
  }

  /** Each in its turn, however many come: none may be silent for so long that it expires. */
  #nextAgent(): string {
    this.#turn = (this.#turn + 1) % this.#registered.length
    return this.#registered[this.#turn] ?? AGENTS[0]
  }

  async #register(agent: string, url: string): Promise<void> {
    await ask(`${this.#scene.front}/agents/register`, CALL_MS, { agent_id: agent, name: agent, url })
    this.#registered.push(agent)
  }

  async #heartbeat(base: string, agent: string): Promise<void> {
    try {
      await ask(`${base}/agents/heartbeat`, CALL_MS, { agent_id: agent })
    } catch (error) {
      if (error instanceof Refused && error.code === 'AGENT_NOT_FOUND') {
        this.ledger.break('lost', `a heartbeat of ${agent}, which is registered, found nobody`)
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
      for (const agent of missing) this.ledger.break('lost', `${agent} is registered and not known at ${node}`)
    }
  }

  async #missing(node: string): Promise<readonly string[]> {
    const due = [...this.#registered]
    const listed = (await ask(`${node}/agents`, CALL_MS)) as readonly Listed[]
    const known = new Set(listed.map(({ agent_id }) => agent_id))
    return due.filter((agent) => !known.has(agent))
  }
}
