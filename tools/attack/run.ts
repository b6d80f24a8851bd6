import { fileURLToPath } from 'node:url'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import type { MemoryUse } from '../harness/instrument.ts'
import { MeasuredProcess } from '../harness/measured-process.ts'
import { startSignalbox } from '../harness/signalbox-server.ts'
import type { Attack } from './attack.ts'
import type { ServerKind } from './server-kind.ts'
import { failureOf } from './caller.ts'
import type { AttackReport } from './attack-report.ts'
import type { HonestFigures, HonestOrder } from './honest-caller.ts'
import { guardedSettings, Identities } from './identities.ts'
import { figuresOf } from './report.ts'
import { Scene } from './scene.ts'
import { valueOf, Watch } from './watch.ts'

export interface AttackOptions {
  readonly attacks: readonly Attack[]
  readonly kinds: readonly ServerKind[]
  /** Smaller counts and shorter floods. */
  readonly quick: boolean
  readonly log: (line: string) => void
}

const NO_MEMORY: MemoryUse = { rssBytes: 0, heapBytes: 0 }

/** How many callers an attack may have. */
const MOST_ATTACKERS = 64

/** How long everything that attackers held may take to be given back, in milliseconds. */
const RELEASE_MS = 30_000

/** Runs each attack against a new server of each kind. */
export async function attack(options: AttackOptions): Promise<readonly AttackReport[]> {
  const reports: AttackReport[] = []
  for (const kind of options.kinds) {
    const identities = await Identities.create(kind, MOST_ATTACKERS)
    for (const one of options.attacks) {
      if (one.servers !== undefined && !one.servers.includes(kind)) continue
      options.log(`${kind}: ${one.name}`)
      const report = await attackOnce(one, kind, identities, options.quick)
      options.log(`  ${figuresOf(report)}`)
      for (const problem of report.problems) options.log(`  ! ${problem}`)
      reports.push(report)
    }
  }
  return reports
}

async function attackOnce(
  attack: Attack,
  kind: ServerKind,
  identities: Identities,
  quick: boolean,
): Promise<AttackReport> {
  await using folder = await TemporaryFolder.create('attack')
  const guarded = kind === 'guarded' ? guardedSettings(folder.path) : {}
  await using server = await startSignalbox({
    storePath: folder.join('store'),
    env: { ...guarded, ...attack.settings },
    nodeArgs: ['--expose-gc', ...(kind === 'guarded' ? ['--max-old-space-size=512'] : [])],
    ...(attack.openFiles === undefined
      ? {}
      : { wrapper: ['bash', '-c', `ulimit -n ${attack.openFiles}; exec "$@"`, 'bash'] }),
  })
  await using honest = new MeasuredProcess({
    script: fileURLToPath(new URL('honest-caller.ts', import.meta.url)),
    instrumented: false,
  })
  const { process, http, api } = server
  const scene = new Scene({ kind, http, api, process, identities, quick })
  const { tally } = scene
  const order: HonestOrder = { http, identity: identities.honest, channel: 'honest', pauseMs: 20 }
  let before = NO_MEMORY
  let watch: Watch | undefined
  let seconds = 0
  try {
    const strike = await attack.prepare(scene)
    before = await process.call<MemoryUse>('memory')
    watch = await Watch.start(process, scene.operator)
    await honest.call('start', order)
    const begin = performance.now()
    await strike()
    seconds = (performance.now() - begin) / 1000
  } catch (error) {
    if (!process.exited) tally.problems.push(`the attack broke off: ${failureOf(error)}`)
  }
  scene.release()
  await untilReleased(scene)
  const watched = (await watch?.stop()) ?? { loopMs: 0, turnMs: 0, peakHeapBytes: 0, peakRssBytes: 0 }
  const figures = (await honest.call<HonestFigures | undefined>('stop')) ?? NOT_STARTED
  const lives = !process.exited
  if (!lives) tally.problems.push(`the process died\n${process.output.slice(-2_000)}`)
  for (const [error, times] of Object.entries(figures.errors)) {
    tally.problems.push(`the other caller saw ${times} times: ${error}`)
  }
  const refusals = lives ? await refusalsOf(scene) : ''
  const after = lives ? await process.call<MemoryUse>('memory') : NO_MEMORY
  scene.operator[Symbol.dispose]()
  return {
    attack: attack.name,
    kind,
    got: String(tally),
    refusals,
    seconds,
    honest: figures,
    watched,
    before,
    after,
    lives,
    problems: tally.problems,
  }
}

const NOT_STARTED: HonestFigures = { requests: 0, p50Ms: 0, p99Ms: 0, maxMs: 0, errors: {} }

/** Waits until nothing of the attackers is counted any more: the other caller has one request under way, the scrape is one too. */
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
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  if (!scene.process.exited) scene.tally.problems.push(`not given back after ${RELEASE_MS / 1000} s: ${held}`)
}

async function refusalsOf(scene: Scene): Promise<string> {
  const samples = (await scene.metrics()).filter(
    ({ name, value }) => name === 'broker_limit_refusals_total' && value > 0,
  )
  return samples.map(({ labels, value }) => `${/"(\w+)"/.exec(labels)?.[1] ?? labels} ×${value}`).join(', ')
}
