import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

import { WORKSPACE } from '../harness/signalbox-server.ts'
import type { AttackReport } from './attack-report.ts'

/** The results of a run, as a file. */
export interface AttackResults {
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
    return `| ${key} | ${cells.join(' | ')} |`
  })
  return [
    `${before.commit} → ${after.commit}`,
    '',
    `| engine | server | attack | ${FIGURES.map(([title]) => title).join(' | ')} |`,
    `| --- | --- | --- | ${FIGURES.map(() => '---').join(' | ')} |`,
    ...rows,
    '',
  ].join('\n')
}

function verdictOf(report: AttackReport): string {
  if (!report.lives) return 'died'
  if (report.problems.length > 0) return 'failed'
  return report.late.length > 0 ? 'late' : 'held'
}
