import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

import { markdownTable, table } from '@signalbox/testkit/figures'
import type { MemoryUse } from '@signalbox/testkit/instrument'
import { WORKSPACE } from '@signalbox/testkit/signalbox-server'

import type { EngineName, ServerKind } from './callers.ts'
import { ENGINE_NAMES, SERVER_KINDS } from './callers.ts'
import type { HonestFigures } from './honest-caller.ts'
import type { Watched } from './scene.ts'

export interface AttackReport {
  readonly attack: string
  readonly engine: EngineName
  readonly kind: ServerKind
  /** The attacker's answers, by status and code. */
  readonly got: string
  /** Refusals by limit. */
  readonly refusals: string
  readonly seconds: number
  /** The other caller before the attack, on the same server. */
  readonly alone: HonestFigures
  /** The other caller during the attack. */
  readonly honest: HonestFigures
  readonly watched: Watched
  /** The share of the machine that processes outside the run took, in percent. */
  readonly othersPercent: number
  readonly before: MemoryUse
  readonly after: MemoryUse
  readonly lives: boolean
  /** The failed expectations. */
  readonly problems: readonly string[]
  /** The times that were too long. */
  readonly late: readonly string[]
  /** True if the attack ran a second time, because times of the first run were too long. */
  readonly repeated: boolean
}

/** Growth of memory after every release that is marked, in bytes. It does not fail the run. */
const MOST_GROWTH = 64 * 2 ** 20

const HEAD = [
  'attack',
  'seconds',
  'others %',
  'other: requests',
  'p99 alone',
  'p50 ms',
  'p99 ms',
  'max ms',
  'errors',
  'loop max ms',
  'tick CPU ms',
  'heap MB before',
  'peak',
  'after',
  'RSS MB before',
  'peak',
  'after',
  'lives',
]

/** Returns a table for each server, and under each row the attacker's answers. */
export function summary(reports: readonly AttackReport[]): string {
  const lines = SERVER_KINDS.flatMap((kind) => ENGINE_NAMES.flatMap((engine) => tableOf(engine, kind, reports)))
  const problems = reports.flatMap(({ attack, engine, kind, problems, late }) =>
    [...problems, ...late].map((problem) => `! ${engine}, ${kind}, ${attack}: ${problem}`),
  )
  const last = problems.length === 0 ? 'every expectation held' : `${problems.length} expectations failed`
  return [...lines, ...problems, last, ''].join('\n')
}

/** Returns the measurements of one row as a line, for people who wait for the table. */
export function figuresOf(report: AttackReport): string {
  const [, ...figures] = cells(report)
  const named = figures.map((figure, index) => `${HEAD[index + 1]} ${figure}`)
  return `${named.join(', ')}; got: ${report.got}; refused by: ${report.refusals}`
}

function tableOf(engine: EngineName, kind: ServerKind, all: readonly AttackReport[]): string[] {
  const reports = all.filter((report) => report.kind === kind && report.engine === engine)
  if (reports.length === 0) return []
  const [head, ...rows] = table([HEAD, ...reports.map(cells)])
  return [
    `server: ${kind}, engine: ${engine}`,
    '',
    head ?? '',
    ...reports.flatMap(({ got, refusals }, index) => [
      rows[index] ?? '',
      `    got: ${got === '' ? 'nothing' : got}${refusals === '' ? '' : `; refused by: ${refusals}`}`,
    ]),
    '',
  ]
}

function cells(report: AttackReport): string[] {
  const { alone, honest, watched, before, after } = report
  const errors = Object.values(honest.errors).reduce((sum, times) => sum + times, 0)
  const grown = (key: keyof MemoryUse): boolean => after[key] - before[key] > MOST_GROWTH
  return [
    report.repeated ? `${report.attack} (again)` : report.attack,
    report.seconds.toFixed(1),
    report.othersPercent.toFixed(0),
    String(honest.requests),
    alone.p99Ms.toFixed(0),
    honest.p50Ms.toFixed(1),
    marked(honest.p99Ms.toFixed(0), honest.p99Ms > mostP99(report)),
    honest.maxMs.toFixed(0),
    String(errors),
    watched.loopMs.toFixed(0),
    watched.turnMs.toFixed(0),
    megabytes(before.heapBytes),
    megabytes(watched.peakHeapBytes),
    marked(megabytes(after.heapBytes), grown('heapBytes')),
    megabytes(before.rssBytes),
    megabytes(watched.peakRssBytes),
    marked(megabytes(after.rssBytes), grown('rssBytes')),
    report.lives ? 'yes' : 'NO',
  ]
}

function marked(figure: string, high: boolean): string {
  return high ? `${figure} !` : figure
}

function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0)
}

/** The results of a run, as a file. */
interface AttackResults {
  /** The commit of the server that was attacked. */
  readonly commit: string
  readonly at: string
  readonly quick: boolean
  readonly reports: readonly AttackReport[]
}

/** Returns the commit of a checkout. */
export function commitOf(checkout = WORKSPACE): string {
  return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: checkout, encoding: 'utf8' }).trim()
}

export function writeResults(file: string, results: AttackResults): void {
  writeFileSync(file, `${JSON.stringify(results, null, 2)}\n`)
}

export function readResults(file: string): AttackResults {
  return JSON.parse(readFileSync(file, 'utf8')) as AttackResults
}

/** The compared measurements of an attack. */
const FIGURES: readonly (readonly [title: string, of: (report: AttackReport) => string])[] = [
  ['tick CPU ms', ({ watched }) => watched.turnMs.toFixed(0)],
  ['loop ms', ({ watched }) => watched.loopMs.toFixed(0)],
  ['p99 alone ms', ({ alone }) => alone.p99Ms.toFixed(0)],
  ['p99 ms', ({ honest }) => honest.p99Ms.toFixed(0)],
  ['peak RSS MB', ({ watched }) => (watched.peakRssBytes / 2 ** 20).toFixed(0)],
  ['others %', ({ othersPercent }) => othersPercent.toFixed(0)],
  ['verdict', verdictOf],
]

function keyOf({ engine, kind, attack }: AttackReport): string {
  return `${engine} | ${kind} | ${attack}`
}

/** Returns a Markdown table: each measurement of the first run, an arrow, and the same one of the second. */
export function comparison(before: AttackResults, after: AttackResults): string {
  const earlier = new Map(before.reports.map((report) => [keyOf(report), report]))
  const later = new Map(after.reports.map((report) => [keyOf(report), report]))
  const rows = [...new Set([...earlier.keys(), ...later.keys()])].map((key) => {
    const both = [earlier.get(key), later.get(key)]
    const cells = FIGURES.map(([, of]) => both.map((report) => (report === undefined ? '–' : of(report))).join(' → '))
    return [key].concat(cells)
  })
  return [
    `${before.commit} → ${after.commit}`,
    '',
    ...markdownTable(['engine', 'server', 'attack', ...FIGURES.map(([title]) => title)], rows),
    '',
  ].join('\n')
}

function verdictOf(report: AttackReport): string {
  if (!report.lives) return 'died'
  if (report.problems.length > 0) return 'failed'
  return report.late.length > 0 ? 'late' : 'held'
}

/** The limit of memory that the server reads from its control group, as in a container. */
export const CONTAINER_BYTES = 2 ** 30

/** The largest resident memory. A container of {@link CONTAINER_BYTES} also holds its kernel memory. */
const MOST_RSS_BYTES = 900 * 2 ** 20

/** The CPU time of one tick that the requests of many connections may take together, in milliseconds. */
const MOST_TURN_MS = 100

/** The factor by which an attack may slow the other caller. */
const MOST_SLOWER = 2

/** The scheduler delays a process by some milliseconds: a shorter p99 counts as this. */
const LEAST_P99_MS = 10

/** Returns the p99 that the other caller may have during an attack, in milliseconds. */
function mostP99({ alone }: Pick<AttackReport, 'alone'>): number {
  return MOST_SLOWER * Math.max(alone.p99Ms, LEAST_P99_MS)
}

/** Returns the times that are too long. Other processes of the machine may have caused them. */
export function lateTimes(
  { alone, honest, watched }: Pick<AttackReport, 'alone' | 'honest' | 'watched'>,
  mostTurnMs = MOST_TURN_MS,
): string[] {
  const late: string[] = []
  const most = mostP99({ alone })
  if (watched.turnMs > mostTurnMs) {
    late.push(`a tick of the event loop took ${watched.turnMs.toFixed(0)} ms of CPU, and ${mostTurnMs} are allowed`)
  }
  if (honest.p99Ms > most) {
    late.push(`the other caller's p99 was ${honest.p99Ms.toFixed(0)} ms, and ${most.toFixed(0)} are allowed`)
  }
  return late
}

/** Returns the reason why the server used too much memory. */
export function memoryProblem(peakRssBytes: number): string | undefined {
  if (peakRssBytes <= MOST_RSS_BYTES) return undefined
  const [peak, most] = [peakRssBytes, MOST_RSS_BYTES].map((bytes) => Math.round(bytes / 2 ** 20))
  return `the server used ${peak} MB, and ${most} are allowed`
}
