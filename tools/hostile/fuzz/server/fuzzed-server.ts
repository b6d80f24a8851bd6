import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import type { MemoryUse } from '@signalbox/testkit/instrument'
import { MeasuredProcess } from '@signalbox/testkit/measured-process'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { nodeArgsOf, readySignalbox, serverScript, WORKSPACE } from '@signalbox/testkit/signalbox-server'

/** Small limits, so that inputs reach them and leaked memory shows. */
const ENVIRONMENT = {
  HTTP_PORT: '0',
  API_PORT: '0',
  LOG_LEVEL: 'warn',
  MAX_BODY_BYTES: '262144',
  MAX_CHANNELS: '400',
  QUEUE_MAX_MESSAGES: '500',
  SETTLE_GRACE_MS: '20',
  CONNECTORSMCP_TOOL_TIMEOUT_SECONDS: '2',
  CONNECTORSMCP_MAX_STREAMS: '8',
  CONNECTORSMCP_EVENTS: 'true',
  WEBHOOKS_ENABLE: 'true',
  CONNECTORSA2_A_DEFAULT_TIMEOUT_SECONDS: '1',
  CONNECTORSA2_A_MAX_TIMEOUT_SECONDS: '1',
  CONNECTORSA2_A_MAX_AGENTS: '20',
  CONNECTORSA2_A_AGENT_MAX_RESPONSE_BYTES: '65536',
  CONNECTORSA2_A_AGENT_MAX_CONCURRENCY: '8',
  CONNECTORSCE_TIMEOUT_SECONDS: '1',
  CONNECTORSCE_MAX_SSE_CONNECTIONS: '16',
  LIMITS_CALLER_STREAMS: '20',
  LIMITS_CALLER_CHANNELS: '300',
  LIMITS_CALLER_AGENTS: '16',
  LIMITS_CALLER_WAITING_REQUESTS: '16',
}

/** The heap of the server, in MiB. */
const HEAP_MIB = 256

/** The name under which the instrument keeps the longest tick for this reader. */
const READER = 'fuzz'

/** Level `error` of pino. */
const ERROR_LEVEL = 50

/** The real server in a separate folder, in which it may write only to its store. */
export class FuzzedServer implements AsyncDisposable {
  readonly #server: SignalboxServer
  #errors: string[] = []
  #tail: string[] = []

  private constructor(server: SignalboxServer) {
    this.#server = server
  }

  static async start(folder: string, env: Readonly<Record<string, string>> = {}): Promise<FuzzedServer> {
    // With NATS the server creates no store, and the key file is in it.
    for (const name of ['home', 'tmp', 'store']) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 })
    const process = new MeasuredProcess({
      script: serverScript(WORKSPACE, false),
      cwd: folder,
      env: {
        ...ENVIRONMENT,
        ...env,
        STORE_PATH: join(folder, 'store'),
        WEBHOOKS_KEY_FILE: join(folder, 'store', 'webhooks.key'),
        HOME: join(folder, 'home'),
        TMPDIR: join(folder, 'tmp'),
        NODE_DISABLE_COMPILE_CACHE: '1',
      },
      nodeArgs: [...nodeArgsOf(WORKSPACE), '--expose-gc', `--max-old-space-size=${HEAP_MIB}`],
    })
    const server = new FuzzedServer(await readySignalbox(process))
    await process.call('startTurns')
    for (const stream of [process.child.stdout, process.child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => server.#read(line))
    }
    return server
  }

  get http(): string {
    return this.#server.http
  }

  get api(): string {
    return this.#server.api
  }

  get ended(): boolean {
    return this.#server.process.exited
  }

  /** Returns the cause of its end: the exit code, the last error that it logged, and its output. */
  get ending(): string {
    const { exitCode, signalCode } = this.#server.process.child
    const fatal = this.#tail.findLast((line) => line.startsWith('{'))
    const cause = fatal === undefined ? '' : causeIn(fatal)
    return `exit ${exitCode ?? signalCode} ${cause}: got ${this.#tail.join('\n').slice(-2_000)}`
  }

  /** Returns the errors that it logged since the previous call. */
  takeErrors(): readonly string[] {
    const errors = this.#errors
    this.#errors = []
    return errors
  }

  /** Returns the longest time that its event loop was blocked since the previous call; `undefined` if it has ended. */
  async loopHeldMs(): Promise<number | undefined> {
    try {
      return await this.#server.process.call<number>('longestTurn', READER)
    } catch {
      // The channel closes before the process has ended.
      await this.#server.process.ended
      return undefined
    }
  }

  /** Returns the bytes in use after a collection, whose time does not count as the server's. */
  async bytesKept(): Promise<number> {
    const { heapBytes } = await this.#server.process.call<MemoryUse>('memory')
    await this.loopHeldMs()
    return heapBytes
  }

  kill(): Promise<void> {
    return this.#server.process.kill()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }

  #read(line: string): void {
    this.#tail = [...this.#tail.slice(-40), line]
    if (!line.startsWith('{')) return
    try {
      const entry: unknown = JSON.parse(line)
      if (typeof entry !== 'object' || entry === null || !('level' in entry)) return
      const { level } = entry
      if (level === 'error' || level === 'fatal' || (typeof level === 'number' && level >= ERROR_LEVEL)) {
        this.#errors.push(line)
      }
    } catch {}
  }
}

/** Returns the text of a logged error, and the Signalbox function that threw it. */
export function causeIn(line: string): string {
  const { msg = '', err } = JSON.parse(line) as { msg?: string; err?: { message?: string; stack?: string } }
  const frame = /at (\S+) \([^)]*\/(?:packages|apps)\//.exec(err?.stack ?? '')?.[1] ?? ''
  return `${msg}: ${err?.message ?? ''} ${frame}`.slice(0, 200)
}
