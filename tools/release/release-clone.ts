import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { run } from './command.ts'
import { ordinaryEnvironment } from './environment.ts'
import type { Versions } from './packages.ts'
import { publishedPackages, versions } from './packages.ts'

export interface Change {
  /** The package that changes. */
  readonly name: string
  /** Its folder in the workspace. */
  readonly folder: string
  /** The conventional subject of the commit. */
  readonly subject: string
}

/** A clean clone of the workspace's HEAD, in which releases are made for real. It has no remote: nothing can be pushed. */
export class ReleaseClone {
  readonly path: string
  readonly #env: NodeJS.ProcessEnv

  private constructor(path: string, env: NodeJS.ProcessEnv) {
    this.path = path
    this.#env = env
  }

  /** Clones and installs. `env` is what releases run with; the installation reads the registry that the caller uses. */
  static async create(workspace: string, path: string, env: NodeJS.ProcessEnv): Promise<ReleaseClone> {
    await run('git', ['clone', '--quiet', '--no-local', workspace, path], { cwd: workspace, env })
    const clone = new ReleaseClone(path, env)
    await clone.git('remote', 'remove', 'origin')
    // A checkout in CI is detached.
    await clone.git('checkout', '--quiet', '-B', 'main')
    await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: path, env: ordinaryEnvironment() })
    return clone
  }

  async git(...args: readonly string[]): Promise<string> {
    return (await run('git', args, { cwd: this.path, env: this.#env })).trim()
  }

  npm(...args: readonly string[]): Promise<string> {
    return run('npm', args, { cwd: this.path, env: this.#env })
  }

  nx(...args: readonly string[]): Promise<string> {
    return run('npx', ['nx', ...args], { cwd: this.path, env: this.#env })
  }

  versions(): Versions {
    return versions(this.path)
  }

  packages(): ReturnType<typeof publishedPackages> {
    return publishedPackages(this.path)
  }

  async tags(): Promise<readonly string[]> {
    return (await this.git('tag', '--list')).split('\n').filter((tag) => tag !== '')
  }

  changelog(name: string): string {
    const folder = this.packages().get(name)?.folder ?? name
    const path = join(this.path, folder, 'CHANGELOG.md')
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  /** Commits one more line in a package, as a contributor would. */
  async commit({ folder, subject }: Change): Promise<void> {
    appendFileSync(join(this.path, folder, 'src/index.ts'), `// ${subject}\n`)
    await this.git('commit', '--quiet', '--all', '--message', subject)
  }
}
