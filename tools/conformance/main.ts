import { commandLine, list, progress, text } from '@signalbox/testkit/command-line'
import { exitOnSignals } from '@signalbox/testkit/measured-process'

import { conform, summary } from './run.ts'
import { SCENARIOS } from './scenarios.ts'

const { values } = commandLine(
  {
    usage: 'npm run conformance -- [options]',
    about: `Runs the official MCP conformance suites against a server that it starts. Exits with 1 if a check fails that is not
listed as a known failure, or if a known failure passes.`,
    end: `Scenarios:\n\n${[...new Set(SCENARIOS.map(({ name }) => `  ${name}`))].join('\n')}`,
  },
  {
    scenario: list('S,…', 'only these scenarios; a prefix such as "tools" selects several'),
    revision: text('R', 'only this protocol revision, such as 2026-07-28'),
  },
)
exitOnSignals()
const { scenario: prefixes = [''], revision } = values
const chosen = SCENARIOS.filter(
  ({ name, version }) =>
    prefixes.some((prefix) => name.startsWith(prefix)) && (revision === undefined || revision === version),
)
if (chosen.length === 0) throw new Error('no scenario fits --scenario and --revision; --help lists them')
const reports = await conform(chosen, progress)
process.stdout.write(summary(reports))
process.exitCode = reports.some(({ problems }) => problems.length > 0) ? 1 : 0
