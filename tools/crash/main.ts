import { parseArgs } from 'node:util'

import { exitOnSignals } from '@signalbox/testkit/measured-process'

import { crash, crashSummary } from './run.ts'

const HELP = `npm run crash -- [options]

Kills the real server (kill -9) at random moments under mixed load and checks that it kept every promise.

  --rounds N        kills over HTTP (default 50)
  --core-rounds N   kills with leased receive, on the broker in process (default 50)
  --seed N          repeats the choices of an earlier run
  --max-life MS     the longest time under load between kills (default 1500)
  --no-sync-check   do not compare fsync calls with commits (the comparison needs strace)
`

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

function number(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} ${text}: it must be a whole number`)
  return value
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string' },
    'core-rounds': { type: 'string' },
    seed: { type: 'string' },
    'max-life': { type: 'string' },
    'no-sync-check': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
exitOnSignals()
if (values.help) {
  process.stdout.write(HELP)
} else {
  const seed = number('seed', values.seed, Date.now() % 2 ** 31)
  log(`seed ${seed}`)
  const report = await crash({
    seed,
    rounds: number('rounds', values.rounds, 50),
    coreRounds: number('core-rounds', values['core-rounds'], 50),
    maxLifeMs: number('max-life', values['max-life'], 1500),
    syncCheck: !values['no-sync-check'],
    log,
  })
  process.stdout.write(crashSummary(seed, report))
  process.exitCode = report.violations.total === 0 ? 0 : 1
}
