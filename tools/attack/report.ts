import type { MemoryUse } from '../harness/instrument.ts'
import type { ServerKind } from './server-kind.ts'
import { SERVER_KINDS } from './server-kind.ts'
import type { AttackReport } from './attack-report.ts'

/** Above these a figure is marked; it fails nothing, as the machine may be busy. */
const MOST_P99_MS = 100
const MOST_TURN_MS = 100
/** What memory may have grown by when everything is given back, in bytes. */
const MOST_GROWTH = 64 * 2 ** 20

const HEAD = [
  'attack',
  'seconds',
  'other: requests',
  'p50 ms',
  'p99 ms',
  'max ms',
  'errors',
  'loop max ms',
  'turn CPU ms',
  'heap MB before',
  'peak',
  'after',
  'RSS MB before',
  'peak',
  'after',
  'lives',
]

/** A table for each server, and under each row what the attacker got. */
export function summary(reports: readonly AttackReport[]): string {
  const lines = SERVER_KINDS.flatMap((kind) => tableOf(kind, reports))
  const problems = reports.flatMap(({ attack, kind, problems }) =>
    problems.map((problem) => `! ${kind}, ${attack}: ${problem}`),
  )
  const last = problems.length === 0 ? 'everything held' : `${problems.length} things did not hold`
  return [...lines, 'A figure with a ! is high; it fails nothing.', '', ...problems, last, ''].join('\n')
}

/** The figures of one row in a line, for those who wait for the table. */
export function figuresOf(report: AttackReport): string {
  const [, ...figures] = cells(report)
  const named = figures.map((figure, index) => `${HEAD[index + 1]} ${figure}`)
  return `${named.join(', ')}; got: ${report.got}; refused by: ${report.refusals}`
}

function tableOf(kind: ServerKind, all: readonly AttackReport[]): string[] {
  const reports = all.filter((report) => report.kind === kind)
  if (reports.length === 0) return []
  const rows = reports.map(cells)
  const widths = HEAD.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
  return [
    `server: ${kind}`,
    '',
    line(HEAD),
    ...reports.flatMap(({ got, refusals }, index) => [
      line(rows[index] ?? []),
      `    got: ${got === '' ? 'nothing' : got}${refusals === '' ? '' : `; refused by: ${refusals}`}`,
    ]),
    '',
  ]
}

function cells(report: AttackReport): string[] {
  const { honest, watched, before, after } = report
  const errors = Object.values(honest.errors).reduce((sum, times) => sum + times, 0)
  const grown = (key: keyof MemoryUse): boolean => after[key] - before[key] > MOST_GROWTH
  return [
    report.attack,
    report.seconds.toFixed(1),
    String(honest.requests),
    honest.p50Ms.toFixed(1),
    marked(honest.p99Ms.toFixed(0), honest.p99Ms > MOST_P99_MS),
    honest.maxMs.toFixed(0),
    String(errors),
    watched.loopMs.toFixed(0),
    marked(watched.turnMs.toFixed(0), watched.turnMs > MOST_TURN_MS),
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
