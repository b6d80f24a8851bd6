import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

export const ROOT = join(import.meta.dirname, '../..')

export interface Block {
  readonly language: string
  readonly text: string
}

/** Returns the fenced blocks of one section of a page, in order. */
export function blocks(page: string, heading: string): readonly Block[] {
  const [, section = ''] = readFileSync(join(ROOT, page), 'utf8').split(`\n## ${heading}\n`)
  const [own = ''] = section.split('\n## ')
  return [...own.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({ language, text }))
}

/** Returns a pattern for the text of a block: `…` matches any text. */
export function shown(text: string): RegExp {
  const parts = text.trim().split('…')
  return new RegExp(`^${parts.map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)).join('[^]*')}$`)
}

export interface Addresses {
  readonly http: string
  readonly api: string
}

/** Starts a server as `npm start` does, on free ports and with a separate store, until the stack is disposed of. */
export async function startServer(stack: AsyncDisposableStack, env: NodeJS.ProcessEnv = {}): Promise<Addresses> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-page-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const server = spawn(process.execPath, ['--conditions=@signalbox/source', 'apps/server/scripts/start.js'], {
    cwd: ROOT,
    env: { ...process.env, HTTP_PORT: '0', API_PORT: '0', STORE_PATH: join(folder, 'store'), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(server, 'exit')
  stack.defer(async () => {
    server.kill('SIGTERM')
    await gone
  })
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.includes('"signalbox ready"')) return JSON.parse(line) as Addresses
  }
  throw new Error('the server ended before it was ready')
}

/** A separate broker for the examples of a page, which replaces the default addresses by its own. */
export class PageServer implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack
  readonly addresses: Addresses

  private constructor(stack: AsyncDisposableStack, addresses: Addresses) {
    this.#stack = stack
    this.addresses = addresses
  }

  static async start(open: (stack: AsyncDisposableStack) => Promise<Addresses> = startServer): Promise<PageServer> {
    await using stack = new AsyncDisposableStack()
    const addresses = await open(stack)
    return new PageServer(stack.move(), addresses)
  }

  /** Returns the text with this broker's addresses. */
  here(text: string): string {
    const { http, api } = this.addresses
    return text.replaceAll('http://127.0.0.1:9090', http).replaceAll('http://127.0.0.1:8080', api)
  }

  /** Runs a shell block, and returns its output. */
  async run({ text }: Block): Promise<string> {
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', this.here(text)])
    return stdout.trim()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync()
  }
}
