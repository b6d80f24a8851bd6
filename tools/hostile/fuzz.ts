import { parseArgs } from 'node:util'

import { exitOnSignals } from '@signalbox/testkit/measured-process'

import { fuzz, summary } from './fuzz/run.ts'
import { readInput, replay } from './fuzz/target.ts'
import { TARGETS } from './fuzz/targets/index.ts'

const HELP = `npm run fuzz -- [options]

Sends inputs from grammars to every parser, and to a running server over sockets, and checks every promise.

  --minutes N      the total duration of all targets (default 1)
  --seed S         repeats the inputs of an earlier run
  --target T,…     only these targets; a prefix such as "server" selects several
  --out DIR        the folder for findings (default fuzz-findings)
  --replay FILE    runs only one stored input against its target

Exits with 1 if it found a violation. Targets:

${TARGETS.map(({ name, about }) => `  ${name.padEnd(20)} ${about}`).join('\n')}
`

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

function positive(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (!(value >= 0)) throw new Error(`--${name} ${text}: a number`)
  return value
}

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    target: { type: 'string' },
    out: { type: 'string', default: 'fuzz-findings' },
    replay: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
exitOnSignals()
if (values.help) {
  process.stdout.write(HELP)
} else if (values.replay !== undefined) {
  const finding = await replay(TARGETS, readInput(values.replay))
  process.stdout.write(
    finding === undefined ? 'nothing found\n' : `${finding.kind}: ${finding.stack ?? finding.message}\n`,
  )
  process.exitCode = finding === undefined ? 0 : 1
} else {
  const wanted = values.target?.split(',') ?? ['']
  const targets = TARGETS.filter(({ name }) => wanted.some((prefix) => name.startsWith(prefix)))
  if (targets.length === 0) throw new Error(`--target ${values.target}: no such target; --help lists them`)
  const seed = positive('seed', values.seed, Date.now() % 2 ** 31)
  log(`seed ${seed}`)
  const milliseconds = positive('minutes', values.minutes, 1) * 60_000
  const reports = await fuzz({ targets, milliseconds, seed, out: values.out, log })
  process.stdout.write(summary(reports))
  process.exitCode = reports.some(({ findings }) => findings.length > 0) ? 1 : 0
}
