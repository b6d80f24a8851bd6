import { parseArgs } from 'node:util'

import { exitOnSignals } from '@signalbox/testkit/measured-process'

import { conform, summary } from './run.ts'
import { SCENARIOS } from './scenarios.ts'

const HELP = `npm run conformance -- [options]

Runs the official MCP conformance suites against a server that it starts. Exits with 1 if a check fails that is not
listed as a known failure, or if a known failure passes.

  --scenario S,…  only these scenarios; a prefix such as "tools" selects several
  --revision R    only this protocol revision, such as 2026-07-28

Scenarios:

${[...new Set(SCENARIOS.map(({ name }) => `  ${name}`))].join('\n')}
`

const { values } = parseArgs({
  options: {
    scenario: { type: 'string' },
    revision: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
exitOnSignals()
if (values.help) {
  process.stdout.write(HELP)
} else {
  const prefixes = values.scenario?.split(',') ?? ['']
  const chosen = SCENARIOS.filter(
    ({ name, version }) =>
      prefixes.some((prefix) => name.startsWith(prefix)) &&
      (values.revision === undefined || values.revision === version),
  )
  if (chosen.length === 0) throw new Error('no scenario fits --scenario and --revision; --help lists them')
  const reports = await conform(chosen, (line) => process.stderr.write(`${line}\n`))
  process.stdout.write(summary(reports))
  process.exitCode = reports.some(({ problems }) => problems.length > 0) ? 1 : 0
}
