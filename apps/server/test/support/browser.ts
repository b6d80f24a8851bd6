import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'

import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** The command of an installed Chromium; `CHROMIUM` names another one. */
export function findChromium({ CHROMIUM, PATH = '' }: NodeJS.ProcessEnv = process.env): string | undefined {
  if (CHROMIUM !== undefined && CHROMIUM !== '') return CHROMIUM
  return PATH.split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

interface Told {
  readonly id?: number
  readonly sessionId?: string
  readonly method?: string
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** What the browser says of an answer that it got. */
export interface SeenResponse {
  readonly url: string
  readonly status: number
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
}

/** A real Chromium without a window, steered over the Chrome DevTools Protocol. */
export class Browser {
  readonly #process: ChildProcess
  readonly #socket: WebSocket
  readonly #profile: string
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #events = new Set<(told: Told) => void>()
  #lastId = 0

  private constructor(chromium: ChildProcess, socket: WebSocket, profile: string) {
    this.#process = chromium
    this.#socket = socket
    this.#profile = profile
    socket.on('message', (data: Buffer) => {
      const told = JSON.parse(data.toString()) as Told
      if (told.id === undefined) {
        for (const listener of this.#events) listener(told)
        return
      }
      const waiting = this.#waiting.get(told.id)
      this.#waiting.delete(told.id)
      if (told.error) waiting?.reject(new Error(told.error.message))
      else waiting?.resolve(told.result)
    })
  }

  /** @param hosts Names that the browser, and nobody else, finds at 127.0.0.1. */
  static async start(command: string, hosts: readonly string[]): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), 'signalbox-browser-'))
    const chromium = spawn(
      command,
      [
        '--headless=new',
        // Chromium's own sandbox does not run as root, as which tests run in containers. The pages are ours.
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--disable-background-networking',
        '--no-first-run',
        '--no-proxy-server',
        `--user-data-dir=${profile}`,
        '--remote-debugging-port=0',
        `--host-resolver-rules=${hosts.map((host) => `MAP ${host} 127.0.0.1`).join(',')}`,
        'about:blank',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    const url = await debuggingUrl(chromium)
    const socket = new WebSocket(url)
    await once(socket, 'open')
    return new Browser(chromium, socket, profile)
  }

  async close(): Promise<void> {
    const exited = once(this.#process, 'exit')
    this.#socket.terminate()
    this.#process.kill('SIGKILL')
    await exited
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 10 })
  }

  /** Opens a page and waits until it is loaded; it closes when the test is over. */
  async open(url: string): Promise<Page> {
    const { targetId } = await this.send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await this.send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true })
    const page = new Page(this, sessionId)
    onTestFinished(async () => {
      await this.send('Target.closeTarget', { targetId })
    })
    await page.load(url)
    return page
  }

  /** Listens to the events of a session until the test is over. */
  listen(sessionId: string, heard: (method: string, params: unknown) => void): void {
    const listener = (told: Told): void => {
      if (told.sessionId === sessionId && told.method !== undefined) heard(told.method, told.params)
    }
    this.#events.add(listener)
    onTestFinished(() => void this.#events.delete(listener))
  }

  send<Result>(method: string, params: object = {}, sessionId?: string): Promise<Result> {
    const id = ++this.#lastId
    const waiting = Promise.withResolvers<unknown>()
    this.#waiting.set(id, waiting)
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }))
    return waiting.promise as Promise<Result>
  }
}

/** A page in the browser. */
export class Page {
  /** Every answer that the page, or the browser on its behalf, got. */
  readonly responses: (SeenResponse & { readonly type: string })[] = []
  readonly #browser: Browser
  readonly #session: string
  #loaded: () => void = () => {}

  constructor(browser: Browser, session: string) {
    this.#browser = browser
    this.#session = session
    browser.listen(session, (method, params) => {
      if (method === 'Page.loadEventFired') this.#loaded()
      if (method !== 'Network.responseReceived') return
      const { type, response } = params as { type: string; response: SeenResponse }
      const headers = Object.fromEntries(
        Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), value]),
      )
      this.responses.push({ type, url: response.url, status: response.status, headers })
    })
  }

  async load(url: string): Promise<void> {
    await this.#browser.send('Page.enable', {}, this.#session)
    await this.#browser.send('Network.enable', {}, this.#session)
    const loaded = new Promise<void>((resolve) => (this.#loaded = resolve))
    await this.#browser.send('Page.navigate', { url }, this.#session)
    await loaded
  }

  /** What a script of the page comes to: the body of an async function, and JSON as its result. */
  async run<Result>(script: string): Promise<Result> {
    const { result, exceptionDetails } = await this.#browser.send<{
      result: { value: Result }
      exceptionDetails?: { exception?: { description?: string } }
    }>(
      'Runtime.evaluate',
      { expression: `(async () => { ${script} })()`, awaitPromise: true, returnByValue: true },
      this.#session,
    )
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? 'the script failed')
    return result.value
  }
}

async function debuggingUrl(chromium: ChildProcess): Promise<string> {
  const said: string[] = []
  if (chromium.stderr === null) throw new Error('no stderr')
  const lines = createInterface({ input: chromium.stderr })
  for await (const line of lines) {
    const [, url] = /^DevTools listening on (ws:.*)$/.exec(line) ?? []
    if (url !== undefined) {
      // What it says from here on must not fill the pipe.
      chromium.stderr.resume()
      return url
    }
    said.push(line)
  }
  throw new Error(`chromium did not start:\n${said.join('\n')}`)
}

/** Serves one page on a free port; resolves with the port. Which origin it has is in the name it is asked by. */
export async function servePage(html: string): Promise<number> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(html)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
