import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const open = new Set<string>()

process.once('exit', () => {
  for (const path of open) rmSync(path, { recursive: true, force: true })
})

/** A temporary folder that is removed when its scope ends (`await using`), or with the process. */
export class TemporaryFolder implements AsyncDisposable {
  readonly path: string

  private constructor(path: string) {
    this.path = path
    open.add(path)
  }

  /** Makes the folder in TMPDIR. For measurements TMPDIR must be on a disk, not in memory. */
  static async create(name: string): Promise<TemporaryFolder> {
    return new TemporaryFolder(await mkdtemp(join(tmpdir(), `signalbox-${name}-`)))
  }

  join(...parts: string[]): string {
    return join(this.path, ...parts)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true, maxRetries: 5 })
    open.delete(this.path)
  }
}
