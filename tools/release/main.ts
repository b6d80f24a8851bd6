import { commandLine, text } from '@signalbox/testkit/command-line'
import { exitOnSignals } from '@signalbox/testkit/measured-process'
import { WORKSPACE } from '@signalbox/testkit/signalbox-server'

import { rehearse } from './rehearsal.ts'

const { values } = commandLine(
  {
    usage: 'npm run release:rehearse -- [options]',
    about: `Releases a clean clone of HEAD into a local registry (verdaccio): everything, then a fix and a breaking change of one package each.
Installs the published packages into empty folders and runs them. Changes neither the working copy nor any other registry.`,
  },
  { node: text('LINES', 'the lines of Node to run on, in addition to the oldest supported version', '22,24,26') },
)
exitOnSignals()
const report = await rehearse({
  workspace: WORKSPACE,
  nodeLines: values.node.split(','),
  log: (line) => process.stdout.write(`${line}\n`),
})
process.stdout.write(report.summary())
// An exit handler kills the registry's process.
process.exit(report.failures.length === 0 ? 0 : 1)
