import { spawn } from 'node:child_process'
import { once } from 'node:events'

import { commandLine, list, number } from '@signalbox/testkit/command-line'
import { WORKSPACE } from '@signalbox/testkit/signalbox-server'

import { PARTS, secondsOf } from './plan.ts'

const ALL = PARTS.map(({ name }) => name)

const { values } = commandLine(
  {
    usage: 'npm run test:stress -- [options]',
    about: 'Runs the checks that are too long for `npm test`, in sequence, and exits with 1 if one failed.',
  },
  {
    minutes: number('N', 'the duration of all parts; the attacks and the idle connections have their own', 20),
    only: list('PART,…', `only these parts: ${ALL.join(', ')}`),
  },
)

/** Runs a script of the workspace; resolves with true if it ended with 0. */
async function run(args: readonly string[], seconds: number): Promise<boolean> {
  const child = spawn('npm', ['run', '--silent', ...args], {
    cwd: WORKSPACE,
    stdio: 'inherit',
    env: { ...process.env, STRESS_MS: String(Math.round(seconds * 1000)) },
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return code === 0
}

const { minutes, only = ALL } = values
const unknown = only.find((name) => !ALL.includes(name))
if (unknown !== undefined) throw new Error(`--only ${unknown}: no such part; --help lists them`)
const parts = PARTS.filter(({ name }) => only.includes(name))
const failed: string[] = []
for (const [part, seconds] of secondsOf(parts, minutes)) {
  process.stdout.write(`# ${part.name}: npm run ${part.command(seconds).join(' ')}\n`)
  if (!(await run(part.command(seconds), seconds))) failed.push(part.name)
}
process.stdout.write(
  `${parts.length - failed.length} parts passed, ${failed.length} failed${failed.length > 0 ? `: ${failed.join(', ')}` : ''}\n`,
)
process.exitCode = failed.length === 0 ? 0 : 1
