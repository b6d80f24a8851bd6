import type { ChildProcessByStdio } from 'node:child_process'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { promisify } from 'node:util'

import { startSignalbox } from '@signalbox/testkit/signalbox-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { until } from '@signalbox/testkit/until'

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
export async function startServer(
  stack: AsyncDisposableStack,
  env: Readonly<Record<string, string>> = {},
): Promise<Addresses> {
  const folder = stack.use(await TemporaryFolder.create('page'))
  return stack.use(await startSignalbox({ storePath: folder.join('store'), instrumented: false, env }))
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

const NODE = `exec ${JSON.stringify(process.execPath)} --conditions=@signalbox/source`

/**
 * A folder in which the commands of a page run as those of a reader do: `signalbox` is the command line of this
 * workspace, and `npm start` starts a server on free ports and stops it when it is ready.
 */
export class PageFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'signalbox-page-'))
  /** The folder that the commands run in. */
  readonly work = join(this.path, 'work')
  readonly options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }

  constructor({ addresses }: Pick<PageServer, 'addresses'>) {
    const bin = join(this.path, 'bin')
    mkdirSync(bin)
    const script = (name: string, text: string): void =>
      writeFileSync(join(bin, name), `#!/bin/bash\n${text}\n`, { mode: 0o755 })
    script('signalbox', `${NODE} ${ROOT}/apps/server/scripts/start.js "$@"`)
    script('node', `exec ${JSON.stringify(process.execPath)} "$@"`)
    script('npx', 'exec "$@"')
    script(
      'npm',
      `while [ "$1" != start ]; do shift; done; shift; [ "$1" != -- ] || shift\n${NODE} ${ROOT}/tools/testing/start-once.ts "$@"`,
    )
    mkdirSync(this.work)
    for (const name of ['examples', 'node_modules', 'package.json']) {
      symlinkSync(join(ROOT, name), join(this.work, name))
    }
    const { PATH = '', NODE_COMPILE_CACHE, SOURCE_BUNDLE } = process.env
    for (const folder of ['backups', 'var/lib']) mkdirSync(join(this.path, folder), { recursive: true })
    this.options = {
      cwd: this.work,
      env: {
        PATH: `${bin}:${PATH}`,
        HOME: this.path,
        SIGNALBOX_URL: addresses.http,
        SIGNALBOX_API_URL: addresses.api,
        TOKEN: 'secret',
        ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
        ...(SOURCE_BUNDLE === undefined ? {} : { SOURCE_BUNDLE }),
      },
    }
  }

  /** Returns the text with the folders of a production server in this folder. */
  here(text: string): string {
    return text.replaceAll(/(?<![\w.])\/(backups|var\/lib)\//g, `${this.path}/$1/`)
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}

// cspell:ignore norc

/** One shell for all examples of a page: variables and background jobs last, as in a reader's terminal. */
export class PastedShell implements AsyncDisposable {
  readonly #folder: PageFolder
  readonly #shell: ChildProcessByStdio<Writable, Readable, Readable>
  #printed = ''
  #errors = ''
  #count = 0

  constructor(folder: PageFolder) {
    this.#folder = folder
    this.#shell = spawn('bash', ['--norc', '-o', 'pipefail'], {
      ...folder.options,
      // A process group, so that background jobs end with the shell.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#shell.stdout.setEncoding('utf8').on('data', (text: string) => (this.#printed += text))
    this.#shell.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
  }

  /** Pastes an example, and returns what it prints. @throws Error if its last command fails */
  async paste(text: string): Promise<string> {
    const name = `example-${++this.#count}.sh`
    writeFileSync(join(this.#folder.path, name), text)
    this.#printed = ''
    // Commands must not read the lines that are pasted later.
    this.#shell.stdin.write(`source ../${name} < /dev/null; echo "ended with $?:${name}"\n`)
    const end = new RegExp(`^([^]*)ended with (\\d+):${name}\n`)
    await until(() => end.test(this.#printed))
    const [, printed = '', status] = end.exec(this.#printed) ?? []
    const output = printed.trim()
    if (status === '0') return output
    throw new Error(`the example ended with ${status}:\n${text}\n${output}\n${this.#errors}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#shell, 'exit')
    if (this.#shell.pid !== undefined) process.kill(-this.#shell.pid, 'SIGKILL')
    await ended
  }
}

/**
 * Starts a server with the default settings in this process, on free ports and with a separate store, until the stack
 * is disposed of. It needs a tenth of the CPU time of a process.
 */
export async function startInProcess(stack: AsyncDisposableStack): Promise<Addresses> {
  const { path } = stack.use(await TemporaryFolder.create('page'))
  const { createConfig, startServer: startHere } = await import('signalbox')
  const server = await startHere(
    createConfig({ log: { level: 'silent' }, http: { port: 0 }, api: { port: 0 }, store: { path } }),
  )
  stack.defer(() => server.close())
  return { http: server.http.url, api: server.api.url }
}
