import type { Random } from '@signalbox/testkit/random'
import type { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { scrape, total } from '../harness/prometheus.ts'
import type { SignalboxServer } from '../harness/signalbox-server.ts'
import { spawnSignalbox, startSignalbox } from '../harness/signalbox-server.ts'
import { countingSyncs, syncsCounted } from '../harness/sync-counter.ts'
import { McpClient } from '../harness/mcp.ts'
import { QueueLedger } from './queue-ledger.ts'
import { StoreLedger } from './store-ledger.ts'
import type { Ledgers, Life } from './traffic.ts'
import { afterRestart, MAX_DELAY_MS, mixedLoad, QUEUES, readAll, receive } from './traffic.ts'
import type { Violations } from './violations.ts'

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

export interface HttpRoundsOptions {
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
    if (random.chance(KILLED_STARTING)) {
      const process = spawnSignalbox({ storePath })
      await pause(random.integer(50, 700))
      await process.kill()
      counts.killedStarting++
      continue
    }
    const syncFile = folder.join(`syncs-${number}`)
    const server = await startSignalbox({
      storePath,
      ...(options.countSyncs ? { wrapper: countingSyncs(syncFile) } : {}),
    })
    const life: Life = { number, http: server.http, ended: false }
    await afterRestart(life, ledgers)
    const load = mixedLoad(life, ledgers, random)
    await pause(random.integer(20, options.maxLifeMs))
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
