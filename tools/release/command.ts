import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface CommandOptions {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

/** Longest time of one command. A registry that does not answer must not hold the rehearsal for ever. */
const TIMEOUT_MS = 10 * 60_000

const running = new Set<ChildProcess>()

/** Ends a command and what it started: each command leads a process group of its own. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group is gone already.
  }
}

process.once('exit', () => {
  for (const child of running) killGroup(child)
})

/** Starts a command that is killed, with what it started, when the rehearsal ends. */
export function start(command: string, args: readonly string[], { cwd, env }: CommandOptions): ChildProcess {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/** Runs a command to its end. Returns its standard output; throws with all of its output when it fails. */
export async function run(command: string, args: readonly string[], options: CommandOptions): Promise<string> {
  const child = start(command, args, options)
  let stdout = ''
  let all = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString()
    all += chunk.toString()
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    all += chunk.toString()
  })
  const timer = setTimeout(() => killGroup(child), TIMEOUT_MS)
  try {
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
    if (code === 0) return stdout
    throw new Error(`${command} ${args.join(' ')} ended with ${code ?? signal}\n${all.slice(-4000)}`)
  } finally {
    clearTimeout(timer)
  }
}
