import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'

import { WORKSPACE } from '@signalbox/testkit/signalbox-server'

import { PARTS, secondsOf } from './plan.ts'

const HELP = `npm run test:stress -- [options]

Runs the checks that are too long for \`npm test\`, in sequence, and exits with 1 if one failed.

  --minutes N      duration of all parts together (default 20); the attacks and the idle connections have their own duration
  --only PART,…    only these parts: ${PARTS.map(({ name }) => name).join(', ')}
`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    only: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

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

if (values.help) {
  process.stdout.write(HELP)
} else {
  const minutes = Number(values.minutes)
  if (!(minutes > 0)) throw new Error(`--minutes is ${values.minutes}; it must be a number above 0`)
  const names = values.only?.split(',') ?? PARTS.map(({ name }) => name)
  const unknown = names.find((name) => !PARTS.some((part) => part.name === name))
  if (unknown !== undefined) throw new Error(`--only ${unknown}: no such part; --help lists them`)
  const parts = PARTS.filter(({ name }) => names.includes(name))
  const failed: string[] = []
  for (const [part, seconds] of secondsOf(parts, minutes)) {
    process.stdout.write(`# ${part.name}: npm run ${part.command(seconds).join(' ')}\n`)
    if (!(await run(part.command(seconds), seconds))) failed.push(part.name)
  }
  process.stdout.write(
    `${parts.length - failed.length} parts passed, ${failed.length} failed${failed.length > 0 ? `: ${failed.join(', ')}` : ''}\n`,
  )
  process.exitCode = failed.length === 0 ? 0 : 1
}
