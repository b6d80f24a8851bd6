import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'

import { McpClient, ToolError } from '@signalbox/testkit/mcp-client'
import { scrape, total } from '@signalbox/testkit/prometheus'
import type { Random } from '@signalbox/testkit/random'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { until } from '@signalbox/testkit/until'
import { spawnSignalbox, startSignalbox } from '@signalbox/testkit/signalbox-server'
import type { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import type { SendKind, Sent, StoredEntry, Violations } from '../load/ledgers.ts'
import { QueueLedger, StoreLedger } from '../load/ledgers.ts'

/** The count of the commit histogram: one observation for each group. */
const COMMITS = 'broker_commit_duration_seconds_count'
const STORES = ['crash.store.a', 'crash.store.b']
/** The share of kills while the server starts. */
const KILLED_STARTING = 0.1
/** The server's grace for settling its answers, in milliseconds. */
const SETTLE_GRACE_MS = 250

export interface HttpFigures {
  readonly rounds: number
  readonly killedStarting: number
  readonly sent: number
  readonly received: number
  readonly again: number
  readonly duplicatesRefused: number
  readonly published: number
  /** Lives whose syncs were compared with their commits; both are sums. */
  readonly syncChecks: number
  readonly commits: number
  readonly syncs: number
}

interface HttpRoundsOptions {
  readonly rounds: number
  /** The longest life under load, in milliseconds. */
  readonly maxLifeMs: number
  /** The time that a settlement may take after the grace, in milliseconds. */
  readonly settlingMs: number
  readonly countSyncs: boolean
  readonly folder: TemporaryFolder
  readonly random: Random
  readonly violations: Violations
  readonly log: (line: string) => void
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}

/** Kills the real server repeatedly under mixed MCP load, on one store, and compares its answers with the ledgers. */
export async function httpRounds(options: HttpRoundsOptions): Promise<HttpFigures> {
  const { folder, random, violations, log } = options
  const storePath = folder.join('http-store')
  const queues = new QueueLedger(violations, SETTLE_GRACE_MS + options.settlingMs)
  const stores = STORES.map((channel) => new StoreLedger(channel, violations))
  const ledgers: Ledgers = { queues, stores, violations }
  const counts = { killedStarting: 0, syncChecks: 0, commits: 0, syncs: 0 }

  for (let number = 1; number <= options.rounds; number++) {
    const isLast = number === options.rounds
    if (!isLast && random.chance(KILLED_STARTING)) {
      const process = spawnSignalbox({ storePath })
      await pause(random.integer(50, 700))
      await process.kill()
      counts.killedStarting++
      continue
    }
    const syncFile = folder.join(`syncs-${number}`)
    const server = await startSignalbox({
      storePath,
      wrapper: options.countSyncs ? countingSyncs(syncFile) : undefined,
    })
    const life: Life = { number, http: server.http, ended: false }
    await afterRestart(life, ledgers)
    const load = mixedLoad(life, ledgers, random)
    await pause(random.integer(20, options.maxLifeMs))
    // On a slow machine, the lives before may have been too short for an answer.
    if (isLast) await until(() => queues.received > 0 && stores.some(({ acknowledged }) => acknowledged > 0))
    // The request for the count delays the kill, so only some lives end right after an answer.
    const commits = options.countSyncs && random.chance(0.5) ? total(await scrape(server.api), COMMITS) : undefined
    life.ended = true
    queues.killed(number, performance.now())
    await server.process.kill()
    await load
    if (commits !== undefined) {
      const syncs = await syncsCounted(syncFile)
      counts.syncChecks++
      counts.commits += commits
      counts.syncs += syncs
      if (syncs < commits)
        violations.add('unsynced', `life ${number}: ${commits} commits, ${syncs} syncs`, commits - syncs)
    }
    if (number % 10 === 0)
      log(`round ${number}: ${queues.acknowledged} sends acknowledged, ${queues.received} received`)
  }

  await lastLife(await startSignalbox({ storePath }), options.rounds + 1, ledgers)
  return {
    rounds: options.rounds,
    ...counts,
    sent: queues.acknowledged,
    received: queues.received,
    again: queues.again,
    duplicatesRefused: queues.duplicatesRefused,
    published: stores.reduce((sum, store) => sum + store.acknowledged, 0),
  }
}

/** The kills are over: every remaining message must arrive, and every entry that was read must exist. */
async function lastLife(server: SignalboxServer, number: number, ledgers: Ledgers): Promise<void> {
  const life: Life = { number, http: server.http, ended: false }
  await afterRestart(life, ledgers)
  await pause(MAX_DELAY_MS + 100)
  const mcp = await McpClient.open(server.http)
  for (const channel of QUEUES) {
    while ((await receive(mcp, life, ledgers, channel, 100)) > 0);
  }
  for (const store of ledgers.stores) store.finish(await readAll(mcp, store, 1))
  mcp.close()
  ledgers.queues.finish()
  const code = await server.process.stop()
  if (code !== 0) ledgers.violations.add('shutdown', `exit code ${code}\n${server.process.output}`)
}

const QUEUES = ['crash.a', 'crash.b', 'crash.c'] as const
/** The longest delay in the traffic, in milliseconds. */
const MAX_DELAY_MS = 2000
const SENDERS = 12
const RECEIVERS = 6
const PUBLISHERS = 6
/** The part of a store that is read again after each restart. */
const REREAD = 300

/** One life of the server, from its clients' view. */
interface Life {
  readonly number: number
  readonly http: string
  /** True from the moment before the kill: failures from then on are no fault. */
  ended: boolean
}

interface Ledgers {
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

/**
 * Runs `step` on a separate connection until the end of the server's life; failures before that are the server's fault.
 */
async function client(life: Life, { violations }: Ledgers, step: (client: McpClient) => Promise<void>): Promise<void> {
  let mcp: McpClient | undefined
  try {
    mcp = await McpClient.open(life.http)
    while (!life.ended) await step(mcp)
  } catch (error) {
    // An answer with an error is always a fault; a broken connection is none once the server was killed.
    if (!life.ended || error instanceof ToolError) violations.add('failed', `life ${life.number}: ${String(error)}`)
  } finally {
    mcp?.close()
  }
}

/** Receives once and records the messages. Resolves with their number. */
async function receive(mcp: McpClient, life: Life, { queues }: Ledgers, channel: string, max: number) {
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
async function readAll(mcp: McpClient, store: StoreLedger, from: number): Promise<number> {
  for (let next = from; ;) {
    const count = await readOn(mcp, store, next)
    if (count === 0) return next - 1
    next += count
  }
}

/** Checks the state right after a restart: entries that were read still exist, and unanswered sends may be repeated. */
async function afterRestart(life: Life, ledgers: Ledgers): Promise<void> {
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

/** Runs producers, consumers, publishers and readers at once, until the end of the life. */
async function mixedLoad(life: Life, ledgers: Ledgers, random: Random): Promise<void> {
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
      // Without new entries, the publishers need a moment.
      if (count === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    clients.push(client(life, ledgers, step))
  }
  await Promise.all(clients)
}

const SYNC_CALLS = 'fsync,fdatasync'

/** Returns `true` if strace is installed and may trace. */
export function canCountSyncs(): boolean {
  try {
    execFileSync('strace', ['-o', '/dev/null', '-e', `trace=${SYNC_CALLS}`, 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * A wrapper that counts the fsync and fdatasync calls of a process, over all its threads. The process keeps its own id
 * (strace runs next to it), so that kill -9 hits it and not strace.
 */
function countingSyncs(file: string): readonly string[] {
  return ['strace', '-D', '-f', '--seccomp-bpf', '-qq', '-c', '-e', `trace=${SYNC_CALLS}`, '-o', file]
}

/** Returns the number of calls, after the process has ended. Without calls strace writes nothing: 0, after 10 s. */
async function syncsCounted(file: string): Promise<number> {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const text = await readFile(file, 'utf8').catch(() => '')
    // Strace writes the summary after the end of the last thread, with a short delay.
    if (/^\s*100\.00.* total$/m.test(text)) {
      return [...text.matchAll(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*\bf(?:data)?sync$/gm)].reduce(
        (sum, [, calls]) => sum + Number(calls),
        0,
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return 0
}
