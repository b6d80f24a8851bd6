// cspell:ignore norc
import type { ChildProcessByStdio } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

import { until } from '@signalbox/testkit/until'

import type { PageFolder } from './page-folder.ts'

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
