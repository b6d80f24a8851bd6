import { NATS_SERVER, NatsServer, natsServerVersion } from '@signalbox/engine-nats/testing'
import { freePort } from '@signalbox/testkit/free-port'
import { cpuMicrosOf, pin } from '@signalbox/testkit/process-cpu'
import type { ChildProcess } from 'node:child_process'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { newFolder } from '../processes.ts'
import type { BenchContext } from '../row.ts'

/** A running broker: the CPU of all its processes, and its port on the loopback interface. */
export interface Peer extends AsyncDisposable {
  readonly port: number
  readonly cpuMicros: () => number
}

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) signal(child, 'SIGKILL')
})

/** Sends a signal to the process and its children, which form a group. */
function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, name)
  } catch {
    // The group has ended.
  }
}

interface Command {
  readonly file: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** A part of the output by which the server reports that it is ready. */
  readonly ready: string
}

/** The longest time that a server needs to start, in ms. */
const READY_MS = 60_000

/** Starts a server on the measured core; resolves when it is ready. */
async function start({ core }: BenchContext, { file, args, env, ready }: Command): Promise<ChildProcess> {
  // Without a core, `env` only runs the server.
  const pinned = core === undefined ? 'env' : 'taskset'
  const child = spawn(pinned, [...(core === undefined ? [] : ['-c', String(core)]), file, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  running.add(child)
  child.once('exit', () => running.delete(child))
  await new Promise<void>((resolve, reject) => {
    let output = ''
    const late = () => reject(new Error(`${file} was not ready after ${READY_MS / 1000} s\n${output}`))
    const deadline = setTimeout(late, READY_MS).unref()
    const take = (chunk: Buffer): void => {
      if (output.length < 65_536) output += chunk.toString()
      if (!output.includes(ready)) return
      clearTimeout(deadline)
      resolve()
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.once('error', reject)
    child.once('exit', () => reject(new Error(`${file} ended before it was ready\n${output}`)))
  })
  return child
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  signal(child, 'SIGKILL')
  await ended
}

/** Returns the process and all its descendants. */
function family(pid: number): readonly number[] {
  const found = new Set([pid])
  // A child may be listed before its parent, so the list is read until it has no further member.
  for (let before = 0; before < found.size;) {
    before = found.size
    for (const name of readdirSync('/proc'))
      if (/^\d+$/.test(name) && found.has(parentOf(name))) found.add(Number(name))
  }
  return [...found]
}

function parentOf(pid: string): number {
  try {
    return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    // The process has ended.
    return -1
  }
}

function cpuOf(processes: readonly number[]): number {
  return processes.reduce((sum, pid) => sum + cpuMicrosOf(pid), 0)
}

/** A program of the machine with its version. */
export interface Installed {
  readonly file: string
  readonly version: string
}

/** Returns the Redis server of this machine; `undefined` if none is installed. */
export function findRedis(): Installed | undefined {
  const file = '/usr/bin/redis-server'
  if (!existsSync(file)) return undefined
  return { file, version: /v=([\d.]+)/.exec(execFileSync(file, ['--version'], { encoding: 'utf8' }))?.[1] ?? '' }
}

/** Starts Redis, which syncs its log before it answers. It does not rewrite the log meanwhile. */
export async function startRedis(context: BenchContext, { file }: Installed): Promise<Peer> {
  const port = await freePort()
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir: newFolder(context),
    appendonly: 'yes',
    appendfsync: 'always',
    save: '',
    'auto-aof-rewrite-percentage': '0',
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  const child = await start(context, { file, args, ready: 'Ready to accept connections' })
  const processes = family(child.pid ?? 0)
  return { port, cpuMicros: () => cpuOf(processes), [Symbol.asyncDispose]: () => stop(child) }
}

/** The start script below Debian's wrapper, which would change to the user of the installed service. */
const RABBIT = '/usr/lib/rabbitmq/bin/rabbitmq-server'

/** Returns the RabbitMQ of this machine; `undefined` if none is installed. */
export function findRabbit(): Installed | undefined {
  if (!existsSync(RABBIT)) return undefined
  const version = /^rabbitmq_server-(.+)$/m.exec(readdirSync('/usr/lib/rabbitmq/lib').join('\n'))?.[1]
  return { file: RABBIT, version: version ?? '' }
}

/** Starts RabbitMQ and its name server, with its own folders and ports. */
export async function startRabbit(context: BenchContext, { file }: Installed): Promise<Peer> {
  const folder = newFolder(context)
  const port = await freePort()
  const names = String(await freePort())
  const epmd = await start(context, {
    file: 'epmd',
    args: ['-d', '-port', names, '-address', '127.0.0.1'],
    ready: 'epmd running',
  })
  const child = await start(context, {
    file,
    args: [],
    env: {
      HOME: folder,
      ERL_EPMD_PORT: names,
      ERL_EPMD_ADDRESS: '127.0.0.1',
      RABBITMQ_CONF_ENV_FILE: '/dev/null',
      RABBITMQ_NODENAME: `bench-${process.pid}@localhost`,
      RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
      RABBITMQ_NODE_PORT: String(port),
      RABBITMQ_DIST_PORT: String(await freePort()),
      RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
      RABBITMQ_LOG_BASE: join(folder, 'log'),
      RABBITMQ_LOGS: '-',
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
      // Without waiting in a loop for work, which would count as CPU of messages.
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
        '-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none',
    },
    ready: 'Server startup complete',
  })
  const processes = [...family(child.pid ?? 0), ...family(epmd.pid ?? 0)]
  return {
    port,
    cpuMicros: () => cpuOf(processes),
    [Symbol.asyncDispose]: async () => {
      await stop(child)
      await stop(epmd)
    },
  }
}

/** Returns the nats-server of this machine; `undefined` if none is installed. */
export function findNats(): Installed | undefined {
  return NATS_SERVER === undefined ? undefined : { file: NATS_SERVER, version: natsServerVersion() }
}

const SYNCS = 'jetstream { sync_interval: always }'

/** Returns whether this nats-server can sync before it acknowledges: whether it accepts the setting. */
function natsSyncs(context: BenchContext, { file }: Installed): boolean {
  const config = join(newFolder(context), 'nats.conf')
  writeFileSync(config, SYNCS)
  return spawnSync(file, ['-t', '-c', config]).status === 0
}

interface NatsPeer extends Peer {
  readonly url: string
  /** `false` for a server that acknowledges before it syncs. */
  readonly syncs: boolean
}

/** Starts nats-server with JetStream. It syncs before each acknowledgement if it can. */
export async function startNats(context: BenchContext, nats: Installed): Promise<NatsPeer> {
  const syncs = natsSyncs(context, nats)
  const server = await NatsServer.start({ config: syncs ? SYNCS : '' })
  if (context.core !== undefined) pin(server.pid ?? 0, context.core)
  const processes = family(server.pid ?? 0)
  return {
    syncs,
    url: server.url,
    port: Number(new URL(server.url).port),
    cpuMicros: () => cpuOf(processes),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
