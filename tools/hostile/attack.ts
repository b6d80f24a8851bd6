import { parseArgs } from 'node:util'

import { exitOnSignals } from '@signalbox/testkit/measured-process'
import { pinLoad } from '@signalbox/testkit/process-cpu'

import { ENGINE_NAMES, SERVER_KINDS } from './attack/callers.ts'
import type { AttackReport } from './attack/report.ts'
import { commitOf, comparison, readResults, summary, writeResults } from './attack/report.ts'
import { attack } from './attack/run.ts'
import { ATTACKS } from './attacks/index.ts'

const HELP = `npm run attack -- [options]

Attacks real servers while another caller sends and receives, and reports the answers of both. Exits with 1 if a
process died or used too much memory, the other caller got an error or waited too long, one tick of the event loop took
too long, or a limit did not hold.

  --attack A,…       only these attacks; a prefix such as "limit" selects several
  --server K         only this kind: default, or guarded (tokens, a policy, a heap of 512 MB)
  --engine E         embedded (the default), nats, or all
  --quick            smaller counts and shorter floods
  --checkout DIR     attacks the server of another checkout, such as that of the commit before
  --json FILE        writes the results to a file, after each attack
  --compare FILE     also prints a Markdown table of these results and the new ones; FILE,FILE compares two files
                     and attacks nothing

Attacks:

${ATTACKS.map(({ name, about }) => `  ${name.padEnd(28)} ${about}`).join('\n')}
`

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Returns the names of which an option selects one, or all. */
function chosen<T extends string>(option: string, value: string | undefined, names: readonly T[]): readonly T[] {
  const found = names.filter((name) => value === undefined || value === 'all' || value === name)
  if (found.length === 0) throw new Error(`${option} ${value}: it must be ${names.join(', ')} or all`)
  return found
}

const { values } = parseArgs({
  options: {
    attack: { type: 'string' },
    server: { type: 'string' },
    engine: { type: 'string', default: 'embedded' },
    quick: { type: 'boolean', default: false },
    checkout: { type: 'string' },
    json: { type: 'string' },
    compare: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
exitOnSignals()
const [before, after] = (values.compare?.split(',') ?? []).map(readResults)
if (values.help) {
  process.stdout.write(HELP)
} else if (before !== undefined && after !== undefined) {
  process.stdout.write(comparison(before, after))
} else {
  const { quick, checkout, json } = values
  const prefixes = values.attack?.split(',') ?? ['']
  const attacks = ATTACKS.filter(({ name }) => prefixes.some((prefix) => name.startsWith(prefix)))
  if (attacks.length === 0) throw new Error(`--attack ${values.attack}: no such attack; --help lists them`)
  const engines = chosen('--engine', values.engine, ENGINE_NAMES)
  const kinds = chosen('--server', values.server, SERVER_KINDS)
  const head = { commit: commitOf(checkout), at: new Date().toISOString(), quick }
  const onReport = (reports: readonly AttackReport[]): void => {
    if (json !== undefined) writeResults(json, { ...head, reports })
  }
  const cores = pinLoad()
  const reports = await attack({ attacks, engines, kinds, quick, repeat: true, checkout, cores, log, onReport })
  process.stdout.write(summary(reports))
  if (before !== undefined) process.stdout.write(comparison(before, { ...head, reports }))
  process.exitCode = reports.some(({ problems, late }) => problems.length + late.length > 0) ? 1 : 0
}
