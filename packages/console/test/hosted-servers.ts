import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

const HOST = fileURLToPath(new URL('../../../apps/server/test/support/servers.fixture.ts', import.meta.url))

/** The URLs of the shared and the management listener. */
export interface ServerUrls {
  readonly http: string
  readonly api: string
}

interface Answer {
  readonly number: number
  /** Of a server that was started. */
  readonly started?: ServerUrls
  readonly problem?: string
}

interface Pending {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
}

/** A process in which the servers of all test files of this process run. It ends with this process. */
class Host {
  readonly #child: ChildProcess
  readonly #pending = new Map<number, Pending>()
  #last = 0
  #output = ''

  constructor() {
    const { PATH = '', NODE_COMPILE_CACHE } = process.env
    this.#child = fork(HOST, {
      execArgv: ['--conditions=@signalbox/source', '--no-allocation-site-pretenuring'],
      env: {
        PATH,
        ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
      },
      silent: true,
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
      if (stream instanceof Socket) stream.unref()
    }
    this.#child.on('message', (answer: Answer) => {
      const { number, problem } = answer
      const pending = this.#pending.get(number)
      this.#pending.delete(number)
      if (problem === undefined) pending?.resolve(answer)
      else pending?.reject(new Error(`${problem}: ${this.#output}`))
      this.#rest()
    })
    this.#child.once('exit', () => {
      for (const { reject } of this.#pending.values()) reject(new Error(`the servers ended: ${this.#output}`))
    })
    this.#rest()
  }

  /** Sends a request. */
  async ask(request: { readonly env: object } | { readonly stop: number }): Promise<Answer> {
    const number = ++this.#last
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#pending.set(number, { resolve, reject })
    this.#child.ref()
    this.#child.channel?.ref()
    this.#child.send({ number, ...request })
    return promise
  }

  /** Lets this process end while no request is pending. */
  #rest(): void {
    if (this.#pending.size > 0) return
    this.#child.unref()
    this.#child.channel?.unref()
  }
}

let host: Host | undefined

export interface HostedServer extends ServerUrls {
  readonly stop: () => Promise<void>
}

/** Starts a server with these settings. Resolves when it accepts calls. */
export async function startHosted(env: Readonly<Record<string, string>>): Promise<HostedServer> {
  const servers = (host ??= new Host())
  const { number, started } = await servers.ask({ env })
  if (started === undefined) throw new Error('the server has no URLs')
  const stop = async (): Promise<void> => {
    await servers.ask({ stop: number })
  }
  return { ...started, stop }
}
