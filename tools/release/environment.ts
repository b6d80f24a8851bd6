import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import type { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

/** Variables that npm and Nx pass to their commands, and the tokens of real registries. */
const INHERITED = /^(npm_|nx_|NPM_|NX_|INIT_CWD$|NODE_AUTH_TOKEN$|NODE_OPTIONS$)/

/** Returns the caller's environment without the settings of the npm or Nx run that started the rehearsal. */
export function ordinaryEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !INHERITED.test(name)))
}

/**
 * Returns an environment that uses only the given registry: it ignores the caller's `.npmrc` with its tokens, and
 * downloads go into a cache of the rehearsal.
 */
export function isolatedEnvironment(folder: TemporaryFolder, registry: string): NodeJS.ProcessEnv {
  const userconfig = folder.join('npmrc')
  const { host } = new URL(registry)
  // npm does not publish without a token; the local registry accepts any.
  writeFileSync(
    userconfig,
    `registry=${registry}\n@signalbox:registry=${registry}\n//${host}/:_authToken=rehearsal\nupdate-notifier=false\n`,
  )
  const identity = { NAME: 'Release rehearsal', EMAIL: 'rehearsal@localhost' }
  return {
    ...ordinaryEnvironment(),
    npm_config_userconfig: userconfig,
    // The machine's settings could redirect the scope.
    npm_config_globalconfig: folder.join('no-global-npmrc'),
    npm_config_registry: registry,
    npm_config_cache: folder.join('npm-cache'),
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    NX_DAEMON: 'false',
    GIT_AUTHOR_NAME: identity.NAME,
    GIT_AUTHOR_EMAIL: identity.EMAIL,
    GIT_COMMITTER_NAME: identity.NAME,
    GIT_COMMITTER_EMAIL: identity.EMAIL,
    // Commits and tags of the rehearsal are not signed.
    GIT_CONFIG_COUNT: '2',
    GIT_CONFIG_KEY_0: 'commit.gpgsign',
    GIT_CONFIG_VALUE_0: 'false',
    GIT_CONFIG_KEY_1: 'tag.gpgsign',
    GIT_CONFIG_VALUE_1: 'false',
  }
}

/** Returns the registry that the caller's npm is configured for. */
export async function configuredRegistry(cwd: string): Promise<string> {
  return (await run('npm', ['config', 'get', 'registry'], { cwd, env: ordinaryEnvironment() })).trim()
}

interface CommandOptions {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

/** The time-out of one command, in milliseconds. A registry that does not answer must not block the rehearsal. */
const TIMEOUT_MS = 10 * 60_000

const running = new Set<ChildProcess>()

/** Ends a command and its children: each command leads a separate process group. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has already ended.
  }
}

process.once('exit', () => {
  for (const child of running) killGroup(child)
})

/** Starts a command that is killed, with its children, when the rehearsal ends. */
export function start(command: string, args: readonly string[], { cwd, env }: CommandOptions): ChildProcess {
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  child.once('exit', () => running.delete(child))
  return child
}

/**
 * Resolves with the result of `find` for the first line of output that has one.
 * @throws Error with the output if the command ends before
 */
export async function firstLine<T>(child: ChildProcess, find: (line: string) => T | undefined): Promise<T> {
  if (child.stdout === null || child.stderr === null) throw new Error('the command has no output')
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  for await (const line of createInterface({ input: child.stdout })) {
    output += `${line}\n`
    const found = find(line)
    if (found === undefined) continue
    // The end of the loop pauses the output, and a full pipe would block the command.
    setImmediate(() => child.stdout?.resume())
    return found
  }
  throw new Error(`${child.spawnargs.join(' ')} ended before it was ready\n${output}`)
}

/** Runs a command to its end. Returns its standard output; throws with all of its output if it fails. */
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

/** Npm's package of Node for this machine. */
export function nodePackage(platform: string = process.platform, arch: string = process.arch): string {
  return `node-${platform === 'win32' ? 'win' : platform}-${arch}`
}

/** Returns the newest version that begins with each of the given prefixes, such as 24 or 22.19. */
export function newestOf(prefixes: readonly string[], available: readonly string[]): readonly string[] {
  return prefixes.map((prefix) => {
    const newest = available
      .filter((version) => version === prefix || version.startsWith(`${prefix}.`))
      .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
      .at(-1)
    if (newest === undefined) throw new Error(`There is no ${nodePackage()} ${prefix}. Choose one that npm has.`)
    return newest
  })
}

/** The oldest Node that the published packages support, from their `engines`. */
export function oldestSupported(workspace: string): string {
  const { engines } = JSON.parse(readFileSync(join(workspace, 'apps/server/package.json'), 'utf8')) as {
    engines: { node: string }
  }
  return engines.node.replace('>=', '')
}

/** Returns the Node versions to run on: the oldest supported, and the newest of each line. */
export async function nodeVersions(workspace: string, lines: readonly string[]): Promise<readonly string[]> {
  const options = { cwd: workspace, env: ordinaryEnvironment() }
  const available = JSON.parse(await run('npm', ['view', nodePackage(), 'versions', '--json'], options)) as string[]
  return [...new Set(newestOf(lines, available))]
}
