import { cpus } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'

import type { MemoryUse } from '@signalbox/testkit/instrument'
import type { Cores } from '@signalbox/testkit/process-cpu'

import type { EngineName, ServerKind } from './callers.ts'
import { failureOf, Identities } from './callers.ts'
import type { HonestFigures, HonestOrder } from './honest-caller.ts'
import type { AttackReport } from './report.ts'
import { figuresOf, lateTimes, memoryProblem } from './report.ts'
import type { Attack } from './scene.ts'
import { Scene, valueOf, Watch } from './scene.ts'
import { Stage } from './stage.ts'

interface AttackOptions {
  readonly attacks: readonly Attack[]
  readonly engines: readonly EngineName[]
  readonly kinds: readonly ServerKind[]
  /** Smaller counts and shorter floods. */
  readonly quick: boolean
  /** Runs an attack once more if times were too long: another process of the machine may be the cause. */
  readonly repeat: boolean
  /** The workspace whose server is attacked. @default the workspace of these tools */
  readonly checkout?: string | undefined
  /** The core of the server's event loop, and that of the attackers and the other caller. @default any */
  readonly cores?: Cores | undefined
  readonly log: (line: string) => void
  /** Called with the reports so far, after each attack. */
  readonly onReport?: (reports: readonly AttackReport[]) => void
}

const NO_MEMORY: MemoryUse = { rssBytes: 0, heapBytes: 0 }

/** The largest number of callers of an attack. */
const MOST_ATTACKERS = 64

/** The time within which the server must release everything that attackers held, in milliseconds. */
const RELEASE_MS = 30_000

/** The time that the other caller runs before its measurement, and is measured without an attack, in milliseconds. */
const WARM_UP_MS = 1_000
const ALONE_MS = 3_000

/** The least time that the other caller is measured: the p99 of an attack that takes 0.2 s would be its longest request. */
const LEAST_MS = 5_000

/** The pause between two rounds of the other caller, in milliseconds: a p99 needs hundreds of requests. */
const PAUSE_MS = 5

/** Runs each attack against a new server of each kind. */
export async function attack(options: AttackOptions): Promise<readonly AttackReport[]> {
  const { attacks, engines, kinds, repeat, log } = options
  const reports: AttackReport[] = []
  for (const engine of engines) {
    for (const kind of kinds) {
      const identities = await Identities.create(kind, MOST_ATTACKERS)
      for (const one of attacks) {
        const { servers = kinds, engines: its = engines } = one
        if (!servers.includes(kind) || !its.includes(engine)) continue
        log(`${engine}, ${kind}: ${one.name}`)
        const run = (): Promise<AttackReport> => attackOnce(one, engine, kind, identities, options)
        let report = await run()
        if (repeat && report.late.length > 0) {
          for (const time of report.late) log(`  again: ${time}`)
          report = { ...(await run()), repeated: true }
        }
        log(`  ${figuresOf(report)}`)
        for (const problem of [...report.problems, ...report.late]) log(`  ! ${problem}`)
        reports.push(report)
        options.onReport?.(reports)
      }
    }
  }
  return reports
}

async function attackOnce(
  attack: Attack,
  engine: EngineName,
  kind: ServerKind,
  identities: Identities,
  { quick, checkout, cores }: AttackOptions,
): Promise<AttackReport> {
  await using stage = await Stage.open(attack, { engine, kind, checkout, cores })
  const { server, honest } = stage
  const { process, http, api } = server
  const scene = new Scene({ engine, kind, http, api, process, identities, quick })
  const { tally } = scene
  const order: HonestOrder = { http, identity: identities.honest, channel: 'honest', pauseMs: PAUSE_MS }
  let before = NO_MEMORY
  let watch: Watch | undefined
  let seconds = 0
  let alone = NOT_STARTED
  let since = { at: performance.now(), others: stage.othersMicros() }
  try {
    const strike = await attack.prepare(scene)
    before = await process.call<MemoryUse>('memory')
    await honest.call('start', order)
    await pause(WARM_UP_MS)
    await honest.call('take')
    await pause(scene.scaled(ALONE_MS, ALONE_MS / 2))
    alone = await honest.call<HonestFigures>('take')
    watch = await Watch.start(process, scene.operator)
    since = { at: performance.now(), others: stage.othersMicros() }
    await strike()
    seconds = (performance.now() - since.at) / 1000
    await pause(Math.max(0, scene.scaled(LEAST_MS, 0) - seconds * 1000))
  } catch (error) {
    if (!process.exited) tally.problems.push(`the attack failed: ${failureOf(error)}`)
  }
  const othersShare = (stage.othersMicros() - since.others) / 1000 / (performance.now() - since.at) / cpus().length
  scene.release()
  await untilReleased(scene)
  const watched = (await watch?.stop()) ?? { loopMs: 0, turnMs: 0, peakHeapBytes: 0, peakRssBytes: 0 }
  const peakRssBytes = Math.max(watched.peakRssBytes, stage.peakRssBytes())
  const figures = (await honest.call<HonestFigures | undefined>('stop')) ?? NOT_STARTED
  const lives = !process.exited
  if (!lives) tally.problems.push(`the process died\n${process.output.slice(-2_000)}`)
  for (const [error, times] of Object.entries(figures.errors)) {
    tally.problems.push(`the other caller got errors ${times} times: ${error}`)
  }
  const tooLarge = memoryProblem(peakRssBytes)
  if (tooLarge !== undefined) tally.problems.push(tooLarge)
  const refusals = lives ? await refusalsOf(scene) : ''
  const after = lives ? await process.call<MemoryUse>('memory') : NO_MEMORY
  scene.operator[Symbol.dispose]()
  return {
    attack: attack.name,
    engine,
    kind,
    got: String(tally),
    refusals,
    seconds,
    alone,
    honest: figures,
    watched: { ...watched, peakRssBytes },
    othersPercent: Math.max(0, 100 * othersShare),
    before,
    after,
    lives,
    problems: tally.problems,
    late: [...scene.late, ...lateTimes({ alone, honest: figures, watched }, attack.loopMs)],
    repeated: false,
  }
}

const NOT_STARTED: HonestFigures = { requests: 0, p50Ms: 0, p99Ms: 0, maxMs: 0, errors: {} }

/**
 * Waits until the server counts nothing of the attackers any more. The other caller has one request in flight, and the
 * scrape is one too.
 */
async function untilReleased(scene: Scene): Promise<void> {
  const end = performance.now() + RELEASE_MS
  let held = ''
  while (!scene.process.exited && performance.now() < end) {
    try {
      const samples = await scene.metrics()
      const use = (limit: string): number => valueOf(samples, 'broker_limit_use', `limit="${limit}"`)
      const left = { requests: use('process_requests'), streams: use('process_streams') }
      const bytes = { body: use('process_body_bytes'), unread: use('process_unread_bytes') }
      if (left.requests <= 2 && left.streams === 0 && bytes.body <= 1_024 && bytes.unread === 0) return
      held = JSON.stringify({ ...left, ...bytes })
    } catch (error) {
      held = failureOf(error)
    }
    await pause(200)
  }
  if (!scene.process.exited) scene.tally.problems.push(`not released after ${RELEASE_MS / 1000} s: ${held}`)
}

async function refusalsOf(scene: Scene): Promise<string> {
  const samples = (await scene.metrics()).filter(
    ({ name, value }) => name === 'broker_limit_refusals_total' && value > 0,
  )
  return samples.map(({ labels, value }) => `${/"(\w+)"/.exec(labels)?.[1] ?? labels} ×${value}`).join(', ')
}
