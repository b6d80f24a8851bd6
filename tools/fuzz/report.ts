import type { TargetReport } from './run.ts'

/** Returns the table at the end of a run: target, inputs, findings. */
export function summary(reports: readonly TargetReport[]): string {
  const rows = reports.map(({ target, inputs, seconds, findings }) => [
    target,
    String(inputs),
    seconds.toFixed(1),
    String(findings.length),
  ])
  const head = ['target', 'inputs', 'seconds', 'findings']
  const total = ['total', sum(reports, 'inputs').toFixed(0), sum(reports, 'seconds').toFixed(1), String(count(reports))]
  const lines = [head, ...rows, total]
  const widths = head.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)))
  const table = lines.map((line) =>
    line
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  '),
  )
  const files = reports.flatMap(({ findings }) =>
    findings.map(({ finding, file }) => `${finding.kind}: ${finding.message.slice(0, 200)}\n  ${file}`),
  )
  return `${[...table, ...files].join('\n')}\n`
}

function sum(reports: readonly TargetReport[], key: 'inputs' | 'seconds'): number {
  return reports.reduce((total, report) => total + report[key], 0)
}

function count(reports: readonly TargetReport[]): number {
  return reports.reduce((total, { findings }) => total + findings.length, 0)
}
