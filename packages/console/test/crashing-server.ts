import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { freePort } from '@signalbox/testkit/free-port'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import type { ServerUrls } from './hosted-servers.ts'
import type { Settings } from './server.ts'
import { Server, settingsOf } from './server.ts'

const MAIN = fileURLToPath(new URL('../../../apps/server/scripts/start.js', import.meta.url))

/** A server in a process of its own, as `npm start` starts it, which ends as a crash does. */
export class CrashingServer extends Server {
  readonly #process: ServerProcess

  private constructor(folder: TemporaryFolder, urls: ServerUrls, process: ServerProcess, settings: Settings) {
    super(folder, urls, () => process.stop(), settings)
    this.#process = process
  }

  static override async start(settings: Settings = {}): Promise<CrashingServer> {
    const folder = await TemporaryFolder.create('console')
    // It has the same ports after a crash.
    const http = await freePort()
    const api = await freePort()
    const urls = { http: `http://127.0.0.1:${http}`, api: `http://127.0.0.1:${api}` }
    const process = new ServerProcess({ ...settingsOf(folder, http, api), ...settings })
    const server = new CrashingServer(folder, urls, process, settings)
    await server.resume()
    return server
  }

  async stop(): Promise<void> {
    await this.#process.stop()
  }

  /** Starts the server again, with the same ports and store. */
  async resume(): Promise<void> {
    await this.#process.start(`${this.api}/ready`)
  }
}

class ServerProcess {
  readonly #settings: Settings
  #child: ChildProcess | undefined
  #output = ''

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Resolves when the probe succeeds. */
  async start(probe: string): Promise<void> {
    const { PATH = '', NODE_COMPILE_CACHE } = process.env
    const child = spawn(process.execPath, ['--conditions=@signalbox/source', MAIN], {
      env: { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }), ...this.#settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    }
    this.#child = child
    while (!(await succeeds(probe))) {
      if (child.exitCode !== null) throw new Error(`the server ended: ${this.#output}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}

async function succeeds(probe: string): Promise<boolean> {
  try {
    const response = await fetch(probe)
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}
