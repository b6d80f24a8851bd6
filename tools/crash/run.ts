import { Random } from '@signalbox/testkit/random'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { Violations } from '../load/ledgers.ts'
import type { AgentFigures, AgentRoundsOptions } from './agent-rounds.ts'
import { agentRounds, AgentViolations } from './agent-rounds.ts'
import type { CoreFigures } from './core-rounds.ts'
import { coreRounds } from './core-rounds.ts'
import type { HttpFigures } from './http-rounds.ts'
import { canCountSyncs, httpRounds } from './http-rounds.ts'
import type { ScheduleFigures, ScheduleRoundsOptions } from './schedule-rounds.ts'
import { scheduleRounds, ScheduleViolations } from './schedule-rounds.ts'

interface CrashOptions {
  readonly seed: number
  readonly rounds: number
  readonly coreRounds: number
  readonly maxLifeMs: number
  /**
   * The time that a settlement may take, in milliseconds: for the timer, the commit and the harness's clock. @default 250
   */
  readonly settlingMs?: number
  /** Counting syncs needs strace; skipping the count needs an explicit option. */
  readonly syncCheck: boolean
  readonly log: (line: string) => void
}

interface CrashReport {
  readonly http: HttpFigures
  readonly core: CoreFigures
  readonly violations: Violations
}

/** Runs both kinds of rounds. The seed determines the choices, but not the machine's timing. */
export async function crash(options: CrashOptions): Promise<CrashReport> {
  const { log, maxLifeMs, settlingMs = 250 } = options
  const violations = new Violations()
  const countSyncs = options.syncCheck && canCountSyncs()
  if (options.syncCheck && !countSyncs) violations.add('unsynced', 'not checked: strace is missing or may not trace')
  await using folder = await TemporaryFolder.create('crash')
  const random = new Random(options.seed)
  const http = await httpRounds({
    rounds: options.rounds,
    maxLifeMs,
    settlingMs,
    countSyncs,
    folder,
    random,
    violations,
    log,
  })
  const path = folder.join('core-store')
  const core = await coreRounds({ rounds: options.coreRounds, maxLifeMs, path, random, violations, log })
  return { http, core, violations }
}

export function crashSummary(seed: number, { http, core, violations }: CrashReport): string {
  return [
    `seed ${seed}`,
    `over HTTP: ${http.rounds} times kill -9 (${http.killedStarting} of them while starting) under mixed load`,
    `  ${http.sent} sends acknowledged, ${http.received} messages received, ${http.again} of them again (killed inside the settle window)`,
    `  ${http.duplicatesRefused} retried sends recognized by their message_id; ${http.published} events stored`,
    http.syncChecks === 0
      ? '  syncs not counted'
      : `  ${http.syncs} syncs for ${http.commits} commit groups in ${http.syncChecks} lives`,
    `leased receive: ${core.rounds} times kill -9 (${core.killedStarting} while starting)`,
    `  ${core.sent} sends and ${core.acked} acks confirmed, ${core.redelivered} messages leased again after a kill, nack or expiry`,
    'broken promises:',
    ...violations.lines(),
    ...violations.examples.map((example) => `  ! ${example}`),
    violations.total === 0 ? 'every promise was kept' : `${violations.total} broken promises`,
    '',
  ].join('\n')
}

interface AgentCrashReport {
  readonly figures: readonly (readonly [engine: string, AgentFigures])[]
  readonly violations: AgentViolations
}

interface AgentCrashOptions extends Pick<CrashOptions, 'seed' | 'rounds' | 'maxLifeMs' | 'log'> {
  readonly engines: readonly AgentRoundsOptions['engine'][]
}

/** Runs the disasters around durable agents, on one engine after the other. */
export async function agentCrash({
  engines,
  log,
  maxLifeMs,
  rounds,
  seed,
}: AgentCrashOptions): Promise<AgentCrashReport> {
  const violations = new AgentViolations()
  await using folder = await TemporaryFolder.create('crash')
  const figures: [string, AgentFigures][] = []
  for (const engine of engines) {
    log(`durable agents, ${engine}`)
    const random = new Random(seed)
    figures.push([engine, await agentRounds({ engine, rounds, maxLifeMs, folder, random, violations, log })])
  }
  return { figures, violations }
}

export function agentSummary(seed: number, { figures, violations }: AgentCrashReport): string {
  const lines = figures.flatMap(([engine, { cuts, ends, events, gaps, kills, lessees }]) => [
    `${engine}: ${kills} nodes killed, ${cuts} times all connections of the agent cut, ${lessees} lessees gone`,
    `  ${events} events read, ${gaps} marked gaps; ends: ${[...ends].map(([end, count]) => `${end} ${count}`).join(', ')}`,
  ])
  return [
    `seed ${seed}`,
    ...lines,
    'broken promises:',
    ...violations.lines(),
    ...violations.examples.map((example) => `  ! ${example}`),
    violations.total === 0 ? 'every promise was kept' : `${violations.total} broken promises`,
    '',
  ].join('\n')
}

interface ScheduleCrashReport {
  readonly figures: readonly (readonly [engine: string, ScheduleFigures])[]
  readonly violations: ScheduleViolations
}

interface ScheduleCrashOptions extends Pick<CrashOptions, 'seed' | 'rounds' | 'log'> {
  readonly engines: readonly ScheduleRoundsOptions['engine'][]
}

/** Kills nodes around the due times of schedules, on one engine after the other. */
export async function scheduleCrash({
  engines,
  log,
  rounds,
  seed,
}: ScheduleCrashOptions): Promise<ScheduleCrashReport> {
  const violations = new ScheduleViolations()
  await using folder = await TemporaryFolder.create('crash')
  const figures: [string, ScheduleFigures][] = []
  for (const engine of engines) {
    log(`schedules, ${engine}`)
    figures.push([engine, await scheduleRounds({ engine, rounds, folder, random: new Random(seed), violations, log })])
  }
  return { figures, violations }
}

export function scheduleSummary(seed: number, { figures, violations }: ScheduleCrashReport): string {
  return [
    `seed ${seed}`,
    ...figures.map(
      ([engine, { dueTimes, kills, recognized }]) =>
        `${engine}: ${kills} nodes killed, ${dueTimes} due times, ${recognized} repeated sends recognized`,
    ),
    'broken promises:',
    ...violations.lines(),
    ...violations.examples.map((example) => `  ! ${example}`),
    violations.total === 0 ? 'every promise was kept' : `${violations.total} broken promises`,
    '',
  ].join('\n')
}
