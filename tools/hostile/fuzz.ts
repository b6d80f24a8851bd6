import { commandLine, list, number, progress as log, text } from '@signalbox/testkit/command-line'
import { exitOnSignals } from '@signalbox/testkit/measured-process'

import { fuzz, summary } from './fuzz/run.ts'
import { readInput, replay } from './fuzz/target.ts'
import { TARGETS } from './fuzz/targets/index.ts'

const { values } = commandLine(
  {
    usage: 'npm run fuzz -- [options]',
    about: `Sends inputs from grammars to every parser, and to a running server over sockets, and checks every promise.
Exits with 1 if it found a violation.`,
    end: `Targets:\n\n${TARGETS.map(({ name, about }) => `  ${name.padEnd(20)} ${about}`).join('\n')}`,
  },
  {
    minutes: number('N', 'the total duration of all targets', 1),
    seed: number('S', 'repeats the inputs of an earlier run'),
    target: list('T,…', 'only these targets; a prefix such as "server" selects several'),
    out: text('DIR', 'the folder for findings', 'fuzz-findings'),
    replay: text('FILE', 'runs only one stored input against its target'),
  },
)
exitOnSignals()
if (values.replay !== undefined) {
  const finding = await replay(TARGETS, readInput(values.replay))
  process.stdout.write(
    finding === undefined ? 'nothing found\n' : `${finding.kind}: ${finding.stack ?? finding.message}\n`,
  )
  process.exitCode = finding === undefined ? 0 : 1
} else {
  const { minutes, seed = Date.now() % 2 ** 31, target = [''], out } = values
  const targets = TARGETS.filter(({ name }) => target.some((prefix) => name.startsWith(prefix)))
  if (targets.length === 0) throw new Error(`--target ${target.join()}: no such target; --help lists them`)
  log(`seed ${seed}`)
  const reports = await fuzz({ targets, milliseconds: minutes * 60_000, seed, out, log })
  process.stdout.write(summary(reports))
  process.exitCode = reports.some(({ findings }) => findings.length > 0) ? 1 : 0
}
