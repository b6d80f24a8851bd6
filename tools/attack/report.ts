import type { MemoryUse } from '../harness/instrument.ts'
import type { AttackReport } from './attack-report.ts'
import { mostP99 } from './criteria.ts'
import type { EngineName, ServerKind } from './server-kind.ts'
import { ENGINE_NAMES, SERVER_KINDS } from './server-kind.ts'

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
  const rows = reports.map(cells)
  const widths = HEAD.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
  return [
    `server: ${kind}, engine: ${engine}`,
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
