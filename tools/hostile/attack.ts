import { commandLine, flag, list, progress as log, text } from '@signalbox/testkit/command-line'
import { exitOnSignals } from '@signalbox/testkit/measured-process'
import { pinLoad } from '@signalbox/testkit/process-cpu'

import { ENGINE_NAMES, SERVER_KINDS } from './attack/callers.ts'
import type { AttackReport } from './attack/report.ts'
import { commitOf, comparison, readResults, summary, writeResults } from './attack/report.ts'
import { attack } from './attack/run.ts'
import { ATTACKS } from './attacks/index.ts'

/** Returns the names of which an option selects one, or all. */
function chosen<T extends string>(option: string, value: string | undefined, names: readonly T[]): readonly T[] {
  const found = names.filter((name) => value === undefined || value === 'all' || value === name)
  if (found.length === 0) throw new Error(`${option} ${value}: it must be ${names.join(', ')} or all`)
  return found
}

const { values } = commandLine(
  {
    usage: 'npm run attack -- [options]',
    about: `Attacks real servers while another caller sends and receives, and reports the answers of both. Exits with 1 if a
process died or used too much memory, the other caller got an error or waited too long, one tick of the event loop took
too long, or a limit did not hold.`,
    end: `Attacks:\n\n${ATTACKS.map(({ name, about }) => `  ${name.padEnd(28)} ${about}`).join('\n')}`,
  },
  {
    attack: list('A,…', 'only these attacks; a prefix such as "limit" selects several'),
    server: text('K', 'only this kind: default, or guarded (tokens, a policy, a heap of 512 MB)'),
    engine: text('E', 'embedded, nats, or all', 'embedded'),
    quick: flag('smaller counts and shorter floods'),
    checkout: text('DIR', 'attacks the server of another checkout, such as that of the commit before'),
    json: text('FILE', 'writes the results to a file, after each attack'),
    compare: list(
      'FILE,…',
      'also prints a Markdown table of these results and the new ones; of two files, it attacks nothing',
    ),
  },
)
exitOnSignals()
const [before, after] = (values.compare ?? []).map((file) => readResults(file))
if (before !== undefined && after !== undefined) {
  process.stdout.write(comparison(before, after))
} else {
  const { quick, checkout, json } = values
  const prefixes = values.attack ?? ['']
  const attacks = ATTACKS.filter(({ name }) => prefixes.some((prefix) => name.startsWith(prefix)))
  if (attacks.length === 0) throw new Error(`--attack ${prefixes.join()}: no such attack; --help lists them`)
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
