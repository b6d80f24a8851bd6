import { rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const open = new Set<string>()

process.once('exit', () => {
  for (const path of open) rmSync(path, { recursive: true, force: true })
})

/** A temporary folder that is gone when its scope ends (`await using`), or at the latest with the process. */
export class TemporaryFolder implements AsyncDisposable {
  readonly path: string

  private constructor(path: string) {
    this.path = path
    open.add(path)
  }

  /** Made under TMPDIR: point that at the disk you want to measure, never at a memory file system. */
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
