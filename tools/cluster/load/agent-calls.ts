import { AGENTS, callAgent } from './agents.ts'
import { Ledger } from './ledger.ts'
import type { Load, Scene } from './load.ts'
import { CALL_MS, Clients } from './load.ts'

const CLIENTS = 4
const PAUSE_MS = 200
/** `params.configuration.timeout`, and what the gateway adds to it, in seconds. */
const TIMEOUT_S = 5
const GATEWAY_BUFFER_S = 10
/** A node that is frozen is waited for, so that what hangs can be told from what is only late, in milliseconds. */
const GIVE_UP_MS = 60_000

/** `message/send` to agents, one after the other. */
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
    for (let i = 0; i < CLIENTS; i++) {
      this.#clients.add(`${i}`, { pauseMs: PAUSE_MS, boundMs }, () => this.#call(this.#scene.front, GIVE_UP_MS))
    }
  }

  async #call(base: string, giveUpMs: number): Promise<void> {
    const n = this.#next++
    const result = await callAgent(base, AGENTS[n % AGENTS.length] ?? AGENTS[0], `c${n}`, TIMEOUT_S, giveUpMs)
    if (JSON.stringify(result) !== JSON.stringify({ echo: `c${n}` })) {
      this.ledger.break('lost', `c${n} got the answer ${JSON.stringify(result).slice(0, 100)}`)
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
