// The other caller, in a separate process so that the attacker's work does not affect its measurements: it sends a
// queue message and receives it, at a steady pace.
import { Agent, request } from 'node:http'
import { text as readText } from 'node:stream/consumers'

import { serveCalls } from '../harness/calls.ts'
import { toolCall, toolResult } from '../harness/mcp.ts'
import type { Identity } from './caller.ts'
import { failureOf } from './caller.ts'
import { quantile } from '../bench/statistics.ts'

export interface HonestOrder {
  readonly http: string
  readonly identity: Identity
  readonly channel: string
  /** Pause between two rounds, in milliseconds. */
  readonly pauseMs: number
}

export interface HonestFigures {
  readonly requests: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** The errors, with the number of occurrences of each. */
  readonly errors: Readonly<Record<string, number>>
}

/** The number of rounds after which it reconnects. */
const ROUNDS_BY_CONNECTION = 10

/** The time-out of the honest client. */
const TIMEOUT_MS = 30_000

class Honest {
  readonly #order: HonestOrder
  #agent: Agent
  #times: number[] = []
  #errors: Record<string, number> = {}
  readonly #done: Promise<void>
  #stopped = false

  constructor(order: HonestOrder) {
    this.#order = order
    this.#agent = agentFrom(order.identity)
    this.#done = this.#run()
  }

  async stop(): Promise<HonestFigures> {
    this.#stopped = true
    await this.#done
    this.#agent.destroy()
    return this.take()
  }

  /** Returns the measurements since the last call. */
  take(): HonestFigures {
    const times = this.#times
    const errors = this.#errors
    this.#times = []
    this.#errors = {}
    const at = (p: number): number => (times.length === 0 ? 0 : quantile(times, p))
    return { requests: times.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), errors }
  }

  async #run(): Promise<void> {
    const { channel, pauseMs } = this.#order
    for (let n = 0; !this.#stopped; n++) {
      const body = `honest ${n}`
      if (n % ROUNDS_BY_CONNECTION === 0) {
        this.#agent.destroy()
        this.#agent = agentFrom(this.#order.identity)
      }
      try {
        await this.#timed('queue_send', { channel, body })
        const { messages } = await this.#timed('queue_receive', { channel, max_messages: 10, wait_timeout_seconds: 10 })
        const bodies = Array.isArray(messages) ? messages.map((message: { body?: unknown }) => message.body) : []
        if (!bodies.includes(body)) throw new Error('the message that was sent was not received')
      } catch (error) {
        const text = failureOf(error).slice(0, 200)
        this.#errors[text] = (this.#errors[text] ?? 0) + 1
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  async #timed(name: string, args: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> {
    const begin = performance.now()
    try {
      const result = toolResult(await this.#post(toolCall(name, args)))
      if (result.isError) throw new Error(result.text)
      return result.structured
    } finally {
      this.#times.push(performance.now() - begin)
    }
  }

  #post(body: string): Promise<string> {
    const { http, identity } = this.#order
    return new Promise((resolve, reject) => {
      const asked = request(`${http}/mcp`, {
        method: 'POST',
        agent: this.#agent,
        localAddress: identity.address,
        timeout: TIMEOUT_MS,
        headers: {
          ...identity.headers,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'content-length': Buffer.byteLength(body),
        },
      })
      asked.on('error', reject)
      asked.once('timeout', () => asked.destroy(new Error('no answer in time')))
      asked.once('response', (response) => {
        const { statusCode } = response
        readText(response).then((text) => {
          if (statusCode === 200) resolve(text)
          else reject(new Error(`HTTP ${statusCode} ${text}`))
        }, reject)
      })
      asked.end(body)
    })
  }
}

function agentFrom({ address }: Identity): Agent {
  return new Agent({ keepAlive: true, localAddress: address })
}

let honest: Honest | undefined

serveCalls({
  start: (order: HonestOrder): void => {
    honest = new Honest(order)
  },
  take: () => honest?.take(),
  stop: () => honest?.stop(),
})
