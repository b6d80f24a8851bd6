// The other caller, in a separate process so that the attacker's work does not affect its measurements: it sends a
// queue message and receives it, at a steady pace.
import { serveCalls } from '@signalbox/testkit/calls'
import { quantile } from '@signalbox/testkit/figures'

import { HonestClient } from '../honest-client.ts'
import type { Identity } from './callers.ts'
import { failureOf } from './callers.ts'

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

let client: HonestClient | undefined
let errors: Record<string, number> = {}
const stopping = new AbortController()
let running = Promise.resolve()

async function run({ http, identity, channel, pauseMs }: HonestOrder): Promise<void> {
  const { address, headers } = identity
  client = new HonestClient({
    queue: channel,
    sends: 1,
    receiveAt: 1,
    waitSeconds: 10,
    reconnectAfter: 10,
    timeoutMs: 30_000,
    localAddress: address,
    headers,
  })
  while (!stopping.signal.aborted) {
    try {
      await client.work(http)
      client.expectNothingLost()
    } catch (error) {
      const text = failureOf(error).slice(0, 200)
      errors[text] = (errors[text] ?? 0) + 1
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  client.close()
}

/** Returns the measurements since the last call. */
function take(): HonestFigures {
  const times = client?.takeTimes() ?? []
  const figures = { errors }
  errors = {}
  const at = (p: number): number => (times.length === 0 ? 0 : quantile(times, p))
  return { requests: times.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), ...figures }
}

serveCalls({
  start: (order: HonestOrder): void => {
    running = run(order)
  },
  take,
  stop: async (): Promise<HonestFigures> => {
    stopping.abort()
    await running
    return take()
  },
})
