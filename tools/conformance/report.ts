import type { ScenarioReport } from './run.ts'
import { suiteVersion } from './suite.ts'

/** Returns the reports as a table in Markdown, and below it the texts of problems, known failures and warnings. */
export function summary(reports: readonly ScenarioReport[]): string {
  const rows = reports.map(({ scenario, passed, known, warnings, problems }) => {
    const checks = passed + known.length + problems.length
    const { name, subject, suite, version } = scenario
    return `| ${subject} | ${suiteVersion(suite)} | ${version} | ${name} | ${passed}/${checks} | ${warnings.length} | ${problems.length === 0 ? (known.length === 0 ? 'passed' : 'known failures') : 'FAILED'} |`
  })
  const notes = reports.flatMap(({ scenario, known, warnings, problems }) => [
    ...problems.map((text) => `- FAILED ${scenario.version} ${scenario.name}: ${text}`),
    ...known.map((id) => `- known ${scenario.version} ${scenario.name}: ${id}: ${scenario.known[id]}`),
    ...warnings.map((text) => `- warning ${scenario.version} ${scenario.name}: ${text}`),
  ])
  return [
    '| subject | suite | revision | scenario | passed | warnings | result |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
    ...notes,
    '',
  ].join('\n')
}
