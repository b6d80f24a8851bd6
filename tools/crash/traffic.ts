import type { Random } from '@signalbox/testkit/random'

import { McpClient, ToolError } from '../harness/mcp.ts'
import type { QueueLedger, SendKind, Sent } from './queue-ledger.ts'
import type { StoredEntry, StoreLedger } from './store-ledger.ts'
import type { Violations } from './violations.ts'

export const QUEUES = ['crash.a', 'crash.b', 'crash.c'] as const
/** The longest delay that traffic asks for. */
export const MAX_DELAY_MS = 2000
const SENDERS = 12
const RECEIVERS = 6
const PUBLISHERS = 6
/** How much of a store is read again after each restart. */
const REREAD = 300

/** One life of the server as its clients see it. */
export interface Life {
  readonly number: number
  readonly http: string
  /** True from the moment before it is killed: whatever fails then is no fault. */
  ended: boolean
}

export interface Ledgers {
  readonly queues: QueueLedger
  readonly stores: readonly StoreLedger[]
  readonly violations: Violations
}

function sendKind(random: Random): SendKind {
  const choice = random.next()
  const plain = { delayMs: 0, expirationMs: 0, retried: false }
  if (choice < 0.2) return { ...plain, delayMs: random.integer(1, MAX_DELAY_MS / 1000) * 1000 }
  if (choice < 0.35) return { ...plain, expirationMs: random.integer(1, 2) * 1000 }
  if (choice < 0.6) return { ...plain, retried: true }
  return plain
}

async function send(client: McpClient, ledger: QueueLedger, sent: Sent): Promise<void> {
  const { channel, id, kind } = sent
  const { structured } = await client.call('queue_send', {
    channel,
    body: ledger.body(sent),
    ...(kind.retried ? { tags: { message_id: id } } : {}),
    ...(kind.delayMs > 0 ? { delay_seconds: kind.delayMs / 1000 } : {}),
    ...(kind.expirationMs > 0 ? { expiration_seconds: kind.expirationMs / 1000 } : {}),
  })
  ledger.acknowledge(sent, performance.now(), structured['duplicate'] === true)
}

/** Runs `step` on a connection of its own until the server's life ends; failures before that are the server's fault. */
async function client(life: Life, { violations }: Ledgers, step: (client: McpClient) => Promise<void>): Promise<void> {
  let mcp: McpClient | undefined
  try {
    mcp = await McpClient.open(life.http)
    while (!life.ended) await step(mcp)
  } catch (error) {
    // An answer that says "failed" is a fault at any time; a broken connection is none once the server was killed.
    if (!life.ended || error instanceof ToolError) violations.add('failed', `life ${life.number}: ${String(error)}`)
  } finally {
    mcp?.close()
  }
}

/** Receives once and notes what came. Resolves with how many. */
export async function receive(mcp: McpClient, life: Life, { queues }: Ledgers, channel: string, max: number) {
  const callStartedAt = performance.now()
  const { text } = await mcp.call('queue_receive', { channel, max_messages: max, wait_timeout_seconds: 1 })
  const now = performance.now()
  const messages = JSON.parse(text) as readonly { readonly body: string }[]
  for (const { body } of messages) queues.receive(body, life.number, callStartedAt, now)
  return messages.length
}

async function readOn(mcp: McpClient, store: StoreLedger, from: number): Promise<number> {
  const { text } = await mcp.call('events_store_read', {
    channel: store.channel,
    from_sequence: from,
    max_messages: 100,
  })
  const entries = JSON.parse(text) as readonly StoredEntry[]
  store.take(from, entries)
  return entries.length
}

/** Reads a store from a sequence to its end; resolves with its last sequence. */
export async function readAll(mcp: McpClient, store: StoreLedger, from: number): Promise<number> {
  for (let next = from; ;) {
    const count = await readOn(mcp, store, next)
    if (count === 0) return next - 1
    next += count
  }
}

/** What must hold right after a restart: what was read is still there, and unanswered sends may be sent again. */
export async function afterRestart(life: Life, ledgers: Ledgers): Promise<void> {
  const mcp = await McpClient.open(life.http)
  try {
    for (const store of ledgers.stores) {
      const seen = store.read
      const last = await readAll(mcp, store, Math.max(1, seen - REREAD))
      if (last < seen) ledgers.violations.add('storeChanged', `${store.channel}: ended at ${seen}, now at ${last}`)
    }
    for (const sent of ledgers.queues.unanswered()) {
      sent.attempts++
      await send(mcp, ledgers.queues, sent)
    }
  } finally {
    mcp.close()
  }
}

/** Producers, consumers, publishers and readers, all at once, until the life ends. */
export async function mixedLoad(life: Life, ledgers: Ledgers, random: Random): Promise<void> {
  const { queues, stores } = ledgers
  const clients: Promise<void>[] = []
  for (let i = 0; i < SENDERS; i++) {
    const step = (mcp: McpClient) =>
      send(mcp, queues, queues.begin(random.pick(QUEUES), sendKind(random), performance.now()))
    clients.push(client(life, ledgers, step))
  }
  for (let i = 0; i < RECEIVERS; i++) {
    const step = async (mcp: McpClient) => {
      await receive(mcp, life, ledgers, random.pick(QUEUES), random.integer(1, 10))
    }
    clients.push(client(life, ledgers, step))
  }
  for (let i = 0; i < PUBLISHERS; i++) {
    const step = async (mcp: McpClient) => {
      const store = random.pick(stores)
      const body = store.nextBody()
      const { structured } = await mcp.call('events_store_publish', { channel: store.channel, body })
      store.acknowledge(body, Number(structured['sequence']))
    }
    clients.push(client(life, ledgers, step))
  }
  for (const store of stores) {
    const step = async (mcp: McpClient) => {
      const count = await readOn(mcp, store, store.read + 1)
      // Nothing new: leave the publishers a moment.
      if (count === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    clients.push(client(life, ledgers, step))
  }
  await Promise.all(clients)
}
