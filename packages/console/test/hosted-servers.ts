import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const HOST = fileURLToPath(new URL('../../../apps/server/test/support/servers.fixture.ts', import.meta.url))

interface Answer {
  readonly number: number
  readonly problem?: string
}

interface Pending {
  readonly resolve: () => void
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
      env: { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }) },
      silent: true,
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    }
    this.#child.on('message', ({ number, problem }: Answer) => {
      const pending = this.#pending.get(number)
      this.#pending.delete(number)
      if (problem === undefined) pending?.resolve()
      else pending?.reject(new Error(`${problem}: ${this.#output}`))
      this.#rest()
    })
    this.#child.once('exit', () => {
      for (const { reject } of this.#pending.values()) reject(new Error(`the servers ended: ${this.#output}`))
    })
    this.#rest()
  }

  /** Sends a request. Resolves with its number when it is done. */
  async ask(request: { readonly env: object } | { readonly stop: number }): Promise<number> {
    const number = ++this.#last
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#pending.set(number, { resolve, reject })
    this.#child.ref()
    this.#child.channel?.ref()
    this.#child.send({ number, ...request })
    await promise
    return number
  }

  /** Lets this process end while no request is pending. */
  #rest(): void {
    if (this.#pending.size > 0) return
    this.#child.unref()
    this.#child.channel?.unref()
  }
}

let host: Host | undefined

/** Starts a server with these settings, which accepts calls. Returns what stops it. */
export async function startHosted(env: Readonly<Record<string, string>>): Promise<() => Promise<void>> {
  const servers = (host ??= new Host())
  const number = await servers.ask({ env })
  return async () => {
    await servers.ask({ stop: number })
  }
}
