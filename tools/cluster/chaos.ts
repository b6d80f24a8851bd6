import { setTimeout as pause } from 'node:timers/promises'

import { McpClient } from '../harness/mcp.ts'
import { Random } from '../harness/random.ts'
import { LocalCluster } from './local-cluster.ts'

export interface ChaosOptions {
  readonly seed: number
  /** How many times something is killed or frozen. */
  readonly rounds: number
  readonly log: (line: string) => void
}

export interface ChaosReport {
  /** Answered with success. */
  readonly acknowledged: number
  readonly received: number
  /** Came more than once, which at-least-once allows. */
  readonly again: number
  /** Acknowledged and never received. */
  readonly lost: readonly string[]
  /** Calls that failed while something was down. */
  readonly failed: number
  /** The longest time without a successful send, in milliseconds. */
  readonly longestGapMs: number
}

const QUEUE = 'chaos'
const SENDERS = 8
const RECEIVERS = 4
/** A call through a frozen node is given up after this long, in milliseconds. */
const CALL_MS = 10_000
/** As long as it may take until sends succeed again, in milliseconds. */
const RECOVERY_MS = 60_000
/** With nothing coming for so long everything has come: longer than an ack wait, in milliseconds. */
const QUIET_MS = 45_000

/** Kills and freezes nodes and nats-servers under load, one at a time, and holds what came against what was acknowledged. */
export async function chaos({ seed, rounds, log }: ChaosOptions): Promise<ChaosReport> {
  const random = new Random(seed)
  await using cluster = await LocalCluster.start()
  const acknowledged = new Set<string>()
  const received = new Map<string, number>()
  const stopSending = new AbortController()
  const stopReceiving = new AbortController()
  let [failed, lastSent, longestGapMs, lastReceived] = [0, performance.now(), 0, performance.now()]

  /** Calls through the balancer until it is told to stop, on another connection after each failure. */
  const work = async (stopped: AbortSignal, step: (client: McpClient) => Promise<void>): Promise<void> => {
    let client: McpClient | undefined
    while (!stopped.aborted) {
      try {
        client ??= await McpClient.open(cluster.front.url)
        await within(step(client), CALL_MS)
      } catch {
        failed++
        client?.close()
        client = undefined
        await pause(50)
      }
    }
    client?.close()
  }
  let next = 0
  const send = async (client: McpClient): Promise<void> => {
    const id = `m${next++}`
    await client.call('queue_send', { channel: QUEUE, body: id })
    acknowledged.add(id)
    longestGapMs = Math.max(longestGapMs, performance.now() - lastSent)
    lastSent = performance.now()
  }
  const receive = async (client: McpClient): Promise<void> => {
    const { structured } = await client.call('queue_receive', {
      channel: QUEUE,
      max_messages: 10,
      wait_timeout_seconds: 1,
    })
    const messages = structured['messages']
    if (!Array.isArray(messages)) return
    for (const message of messages as { body: string }[]) {
      received.set(message.body, (received.get(message.body) ?? 0) + 1)
      lastReceived = performance.now()
    }
  }
  const senders = Array.from({ length: SENDERS }, () => work(stopSending.signal, send))
  const receivers = Array.from({ length: RECEIVERS }, () => work(stopReceiving.signal, receive))

  for (let round = 0; round < rounds; round++) {
    await pause(random.integer(500, 2_000))
    const which = random.integer(0, 2)
    const what = random.pick(['kill node', 'freeze node', 'kill nats', 'freeze nats'] as const)
    const downMs = random.integer(500, 4_000)
    log(`round ${round + 1}: ${what} ${which} for ${downMs} ms; ${acknowledged.size} acknowledged`)
    const server = cluster.nats.servers[which]
    if (what === 'kill node') await cluster.killNode(which)
    else if (what === 'freeze node') cluster.pauseNode(which)
    else if (what === 'kill nats') await server?.kill()
    else server?.pause()
    await pause(downMs)
    if (what === 'kill node') await cluster.startNode(which)
    else if (what === 'freeze node') cluster.resumeNode(which)
    else if (what === 'kill nats') await server?.start()
    else server?.resume()
  }
  // The time until it works again belongs to the gap.
  const before = acknowledged.size
  for (let waited = 0; acknowledged.size === before && waited < RECOVERY_MS; waited += 100) await pause(100)
  stopSending.abort()
  await Promise.all(senders)
  lastReceived = performance.now()
  const missing = (): string[] => [...acknowledged].filter((id) => !received.has(id))
  while (missing().length > 0 && performance.now() - lastReceived < QUIET_MS) await pause(200)
  stopReceiving.abort()
  await Promise.all(receivers)
  return {
    acknowledged: acknowledged.size,
    received: received.size,
    again: [...received.values()].filter((times) => times > 1).length,
    lost: missing(),
    failed,
    longestGapMs: Math.round(longestGapMs),
  }
}

async function within(work: Promise<void>, milliseconds: number): Promise<void> {
  const late = new AbortController()
  const timer = pause(milliseconds, undefined, { signal: late.signal }).then(
    () => Promise.reject(new Error('no answer')),
    () => undefined,
  )
  try {
    await Promise.race([work, timer])
  } finally {
    late.abort()
    // Whatever becomes of it now.
    work.catch(() => {})
  }
}
