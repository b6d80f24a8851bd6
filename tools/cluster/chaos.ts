import { Buffer } from 'node:buffer'
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

/** A leased message, as `/ce/queue/receive` hands it out. */
interface Delivery {
  readonly event: { readonly data_base64: string }
  readonly receipt: string
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

  /** Repeats a step until it is told to stop, and pauses after one that failed. */
  const repeat = async (stopped: AbortSignal, step: () => Promise<void>): Promise<void> => {
    while (!stopped.aborted) {
      try {
        await step()
      } catch {
        failed++
        await pause(50)
      }
    }
  }
  /** Sends through the balancer, on another connection after each failure. */
  const sender = async (): Promise<void> => {
    let client: McpClient | undefined
    await repeat(stopSending.signal, async () => {
      try {
        client ??= await McpClient.open(cluster.front.url)
        await within(send(client), CALL_MS)
      } catch (error) {
        client?.close()
        client = undefined
        throw error
      }
    })
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
  const call = async (path: string, parameters: URLSearchParams): Promise<unknown> => {
    const response = await fetch(`${cluster.front.url}${path}?${parameters.toString()}`, {
      method: 'POST',
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(CALL_MS),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status}`)
    return ((await response.json()) as { data: unknown }).data
  }
  /**
   * On a lease, which is acknowledged after the messages are here: a destructive read is settled when the balancer has the
   * answer, and what the balancer cannot pass on would count as lost.
   */
  const receive = async (): Promise<void> => {
    const wanted = { channel: QUEUE, max_messages: '10', wait_timeout: '1', visibility_seconds: '20' }
    const { messages } = (await call('/ce/queue/receive', new URLSearchParams(wanted))) as { messages: Delivery[] }
    for (const { event } of messages) {
      const id = Buffer.from(event.data_base64, 'base64').toString()
      received.set(id, (received.get(id) ?? 0) + 1)
      lastReceived = performance.now()
    }
    if (messages.length === 0) return
    await call(
      '/ce/queue/ack',
      new URLSearchParams(messages.map(({ receipt }): [string, string] => ['receipt', receipt])),
    )
  }
  const senders = Array.from({ length: SENDERS }, sender)
  const receivers = Array.from({ length: RECEIVERS }, () => repeat(stopReceiving.signal, receive))

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
