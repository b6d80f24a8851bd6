import { parseArgs } from 'node:util'

import { exitOnSignals } from '../harness/signals.ts'
import { SERVER_KINDS } from './server-kind.ts'
import { ATTACKS } from './attacks/index.ts'
import { summary } from './report.ts'
import { attack } from './run.ts'

const HELP = `npm run attack -- [options]

Attacks real servers while another caller sends and receives, and shows what both of them get. Exits with 1 when a
process died, the other caller saw an error, or a limit did not hold.

  --attack A,…   only these; a prefix such as "limit" will do
  --server K     only this kind: default, or guarded (tokens, a policy, a heap of 512 MB)
  --quick        smaller counts and shorter floods

Attacks:

${ATTACKS.map(({ name, about }) => `  ${name.padEnd(28)} ${about}`).join('\n')}
`

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

const { values } = parseArgs({
  options: {
    attack: { type: 'string' },
    server: { type: 'string' },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
exitOnSignals()
if (values.help) {
  process.stdout.write(HELP)
} else {
  const prefixes = values.attack?.split(',') ?? ['']
  const attacks = ATTACKS.filter(({ name }) => prefixes.some((prefix) => name.startsWith(prefix)))
  if (attacks.length === 0) throw new Error(`--attack ${values.attack}: there is none; --help lists them`)
  const kinds = SERVER_KINDS.filter((kind) => values.server === undefined || values.server === kind)
  if (kinds.length === 0) throw new Error(`--server ${values.server}: it must be ${SERVER_KINDS.join(' or ')}`)
  const reports = await attack({ attacks, kinds, quick: values.quick, log })
  process.stdout.write(summary(reports))
  process.exitCode = reports.some(({ problems }) => problems.length > 0) ? 1 : 0
}
