import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { NatsServer } from '@signalbox/engine-nats/testing'
import { MeasuredProcess } from '@signalbox/testkit/measured-process'
import type { Cores } from '@signalbox/testkit/process-cpu'
import { cpuMicrosOf, machineCpuMicros, pinMainThread } from '@signalbox/testkit/process-cpu'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { fetchedServer } from '../../cluster/debian-server.ts'
import type { EngineName, ServerKind } from './callers.ts'
import { guardedSettings } from './callers.ts'
import { CONTAINER_BYTES } from './report.ts'
import type { Attack } from './scene.ts'

interface StageOptions {
  readonly engine: EngineName
  readonly kind: ServerKind
  /** The workspace whose server is attacked. @default the workspace of these tools */
  readonly checkout?: string | undefined
  /** The core of the server's event loop, and that of the attackers and the other caller. @default any */
  readonly cores?: Cores | undefined
}

/** The other caller shares a core with the attackers and must not wait for them: it gets a real-time priority. */
const HONEST_PRIORITY = ['chrt', '--rr', '1']

/**
 * The server and its storage must not wait for other programs of the machine either, such as the attackers: they get a low
 * niceness and separate sessions, because niceness has no effect between sessions. A real-time priority would falsify the times:
 * its threads would then keep a core for 100 ms, and the kernel would stop them for 50 ms in each second.
 */
const SERVER_PRIORITY = ['setsid', 'bash', '-c', 'echo -15 > /proc/self/autogroup; exec nice -n -15 "$@"', 'bash']

/**
 * Runs a command in a mount namespace with a control group of the second version that shows a limit of memory. Nothing
 * enforces the limit: the run compares the peak of the resident memory with its own.
 */
const CONTAINER = `set -e
mount -t tmpfs none /sys/fs/cgroup
cd /sys/fs/cgroup
echo ${CONTAINER_BYTES} > memory.max
echo max > memory.high
echo 0 > memory.current
echo 0::/ > self
mount --bind self /proc/$$/cgroup
cd - > /dev/null
exec "$@"`

const inContainer = ['unshare', '--mount', 'bash', '-c', CONTAINER, 'bash']

/** True if this user may raise priorities; otherwise other programs and the attackers delay the measured processes. */
const mayRaise = succeeds([...HONEST_PRIORITY, 'true'])

/** True if this user may mount; otherwise the server sees the memory of the machine. */
const canMount = succeeds([...inContainer, 'true'])

function succeeds([command = '', ...args]: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** A server to attack with its storage, and a process for the other caller. */
export class Stage implements AsyncDisposable {
  readonly server: SignalboxServer
  readonly honest: MeasuredProcess
  readonly #nats: NatsServer | undefined
  readonly #held: AsyncDisposableStack

  private constructor(server: SignalboxServer, honest: MeasuredProcess, held: AsyncDisposableStack, nats?: NatsServer) {
    this.server = server
    this.honest = honest
    this.#held = held
    this.#nats = nats
  }

  static async open(attack: Attack, { engine, kind, checkout, cores }: StageOptions): Promise<Stage> {
    await using held = new AsyncDisposableStack()
    const canRaise = mayRaise && cores !== undefined
    const folder = held.use(await TemporaryFolder.create('attack'))
    const priority = canRaise ? SERVER_PRIORITY : []
    // It would start on the core of the attackers, and use no other: a separate machine would not share it.
    const anyCore = cores === undefined ? [] : ['taskset', '-c', `${cores.measured},${cores.load}`]
    const nats =
      engine === 'nats'
        ? held.use(await NatsServer.start({ binary: fetchedServer(), wrapper: [...anyCore, ...priority] }))
        : undefined
    const files =
      attack.openFiles === undefined ? [] : ['bash', '-c', `ulimit -n ${attack.openFiles}; exec "$@"`, 'bash']
    const server = held.use(
      await startSignalbox({
        storePath: folder.join('store'),
        root: checkout,
        env: {
          ...(nats === undefined ? {} : { ENGINE: 'nats', NATS_SERVERS: nats.url }),
          ...(kind === 'guarded' ? guardedSettings(folder.path) : {}),
          ...attack.settings,
        },
        nodeArgs: ['--expose-gc', ...(kind === 'guarded' ? ['--max-old-space-size=512'] : [])],
        wrapper: [...priority, ...(canMount ? inContainer : []), ...files],
      }),
    )
    // The event loop gets a core that the attackers do not use; the other threads of the server run on any core.
    if (cores !== undefined) pinMainThread(server.process.pid, cores.measured)
    const honest = held.use(
      new MeasuredProcess({
        script: fileURLToPath(new URL('honest-caller.ts', import.meta.url)),
        instrumented: false,
        core: cores?.load,
        wrapper: canRaise ? HONEST_PRIORITY : [],
      }),
    )
    return new Stage(server, honest, held.move(), nats)
  }

  /** Returns the CPU time that all other processes of the machine have used, in microseconds. */
  othersMicros(): number {
    const own = [process.pid, this.server.process.pid, this.honest.pid, this.#nats?.pid]
    let rest = machineCpuMicros()
    for (const pid of own) if (pid !== undefined) rest -= usedBy(pid)
    return rest
  }

  /** Returns the largest resident memory of the server since its start, in bytes; 0 if it has ended. */
  peakRssBytes(): number {
    try {
      const status = readFileSync(`/proc/${this.server.process.pid}/status`, 'utf8')
      return Number(/^VmHWM:\s*(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024
    } catch {
      return 0
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#held[Symbol.asyncDispose]()
  }
}

/** A process that has ended counts as others: its use is no longer known. */
function usedBy(pid: number): number {
  try {
    return cpuMicrosOf(pid)
  } catch {
    return 0
  }
}
