import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'

const INTERVAL_MICROS = 250

interface WorkerMessage {
  readonly params: { readonly sessionId: string; readonly message: string }
}

interface WorkerAttached {
  readonly params: { readonly sessionId: string; readonly workerInfo: { readonly title: string } }
}

/**
 * Profiles every thread of this process from inside: `--cpu-prof` does not reach worker threads with their own
 * arguments.
 */
export class Profiler {
  readonly #session = new Session()
  readonly #workers = new Map<string, (profile: unknown) => void>()
  readonly #profiles: Promise<unknown>[] = []
  #started: Promise<void> | undefined

  start(): void {
    this.#started = this.#start()
  }

  async #start(): Promise<void> {
    const session = this.#session
    session.connect()
    session.on('NodeWorker.attachedToWorker', ({ params }: WorkerAttached) => this.#attached(params.sessionId))
    session.on('NodeWorker.receivedMessageFromWorker', ({ params }: WorkerMessage) => {
      const { id, result } = JSON.parse(params.message) as { id?: number; result?: { profile?: unknown } }
      if (id === STOP) this.#workers.get(params.sessionId)?.(result?.profile)
    })
    await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false })
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: INTERVAL_MICROS })
    await session.post('Profiler.start')
  }

  #attached(sessionId: string): void {
    this.#profiles.push(new Promise((resolve) => this.#workers.set(sessionId, resolve)))
    this.#tell(sessionId, 1, 'Profiler.enable')
    this.#tell(sessionId, 2, 'Profiler.setSamplingInterval', { interval: INTERVAL_MICROS })
    this.#tell(sessionId, 3, 'Profiler.start')
  }

  #tell(sessionId: string, id: number, method: string, params: object = {}): void {
    const message = JSON.stringify({ id, method, params })
    void this.#session.post('NodeWorker.sendMessageToWorker', { sessionId, message })
  }

  /** Stops, and writes a file for each thread: `main.cpuprofile`, `worker-1.cpuprofile` … */
  async stop(folder: string): Promise<void> {
    await this.#started
    mkdirSync(folder, { recursive: true })
    const { profile } = await this.#session.post('Profiler.stop')
    writeFileSync(join(folder, 'main.cpuprofile'), JSON.stringify(profile))
    for (const sessionId of this.#workers.keys()) this.#tell(sessionId, STOP, 'Profiler.stop')
    for (const [i, worker] of (await Promise.all(this.#profiles)).entries()) {
      writeFileSync(join(folder, `worker-${i + 1}.cpuprofile`), JSON.stringify(worker))
    }
    this.#session.disconnect()
  }
}

const STOP = 4
