import { parseArgs } from 'node:util'

import { exitOnSignals } from '@signalbox/testkit/measured-process'
import { WORKSPACE } from '@signalbox/testkit/signalbox-server'

import { rehearse } from './rehearsal.ts'

const HELP = `npm run release:rehearse -- [options]

Releases a clean clone of HEAD into a local registry (verdaccio): everything, then a fix and a breaking change of one package each.
Installs the published packages into empty folders and runs them. Changes neither the working copy nor any other registry.

  --node LINES   the lines of Node to run on, in addition to the oldest supported version (default 22,24,26)
`

const { values } = parseArgs({
  options: { node: { type: 'string', default: '22,24,26' }, help: { type: 'boolean', default: false } },
})
exitOnSignals()
if (values.help) {
  process.stdout.write(HELP)
} else {
  const report = await rehearse({
    workspace: WORKSPACE,
    nodeLines: values.node.split(','),
    log: (line) => process.stdout.write(`${line}\n`),
  })
  process.stdout.write(report.summary())
  // An exit handler kills the registry's process.
  process.exit(report.failures.length === 0 ? 0 : 1)
}
