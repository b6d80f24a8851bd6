import type { ChildProcess } from 'node:child_process'
import { execFile, spawn } from 'node:child_process'
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

/** The fenced blocks of one section of a page, in order. */
export function blocks(page: string, heading: string): readonly Block[] {
  const [, section = ''] = readFileSync(join(ROOT, page), 'utf8').split(`\n## ${heading}\n`)
  const [own = ''] = section.split('\n## ')
  return [...own.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({ language, text }))
}

/** What a block shows, as a pattern: `…` stands for anything. */
export function shown(text: string): RegExp {
  const parts = text.trim().split('…')
  return new RegExp(`^${parts.map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)).join('[^]*')}$`)
}

/** A server of its own for what a page shows, in which the default addresses stand for its. */
export class PageServer implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #folder: string
  readonly #addresses: { readonly http: string; readonly api: string }

  private constructor(process: ChildProcess, folder: string, addresses: { http: string; api: string }) {
    this.#process = process
    this.#folder = folder
    this.#addresses = addresses
  }

  static async start(): Promise<PageServer> {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-page-'))
    const server = spawn(process.execPath, ['--conditions=@signalbox/source', 'apps/server/src/main.ts'], {
      cwd: ROOT,
      env: { ...process.env, HTTP_PORT: '0', API_PORT: '0', STORE_PATH: join(folder, 'store') },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    for await (const line of createInterface({ input: server.stdout })) {
      if (!line.includes('"signalbox ready"')) continue
      return new PageServer(server, folder, JSON.parse(line) as { http: string; api: string })
    }
    throw new Error('the server ended before it was ready')
  }

  /** The text with this server's addresses. */
  here(text: string): string {
    const { http, api } = this.#addresses
    return text.replaceAll('http://127.0.0.1:9090', http).replaceAll('http://127.0.0.1:8080', api)
  }

  /** Runs a block of shell, and returns what it wrote. */
  async run({ text }: Block): Promise<string> {
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', this.here(text)])
    return stdout.trim()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.kill('SIGTERM')
    await gone
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
