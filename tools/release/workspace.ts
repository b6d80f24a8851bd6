import { appendFileSync, existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { ordinaryEnvironment, run } from './environment.ts'

interface Change {
  /** The package to change. */
  readonly name: string
  /** Its folder in the workspace. */
  readonly folder: string
  /** The conventional subject of the commit. */
  readonly subject: string
}

/** A clean clone of the workspace's HEAD, for real releases. It has no remote, so nothing can be pushed. */
export class ReleaseClone {
  readonly path: string
  readonly #env: NodeJS.ProcessEnv

  private constructor(path: string, env: NodeJS.ProcessEnv) {
    this.path = path
    this.#env = env
  }

  /** Clones and installs. Releases run with `env`; the installation uses the caller's registry. */
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

type Ranges = Readonly<Record<string, string>>

/** The parts of a manifest that a release reads or changes. */
interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly dependencies?: Ranges
  readonly devDependencies?: Ranges
  readonly peerDependencies?: Ranges
  readonly optionalDependencies?: Ranges
}

/** A published package: its manifest, and its folder relative to the workspace. */
interface PublishedPackage {
  readonly folder: string
  readonly manifest: Manifest
}

/** Reads the published packages of a workspace, by name. */
export function publishedPackages(workspace: string): ReadonlyMap<string, PublishedPackage> {
  const packages = globSync('{packages,apps}/*/package.json', { cwd: workspace })
    .sort()
    .map((path) => ({
      folder: dirname(path),
      manifest: JSON.parse(readFileSync(join(workspace, path), 'utf8')) as Manifest,
    }))
  return new Map(packages.filter(({ manifest }) => manifest.private !== true).map((one) => [one.manifest.name, one]))
}

/** Versions of packages, by name. */
export type Versions = ReadonlyMap<string, string>

function versions(workspace: string): Versions {
  return new Map([...publishedPackages(workspace)].map(([name, { manifest }]) => [name, manifest.version]))
}

/** Returns every range of a manifest for a package. Nx treats a development dependency like any other. */
export function rangesFor(name: string, manifest: Manifest): readonly string[] {
  const { dependencies, devDependencies, peerDependencies, optionalDependencies } = manifest
  return [dependencies, devDependencies, peerDependencies, optionalDependencies]
    .map((ranges) => ranges?.[name])
    .filter((range) => range !== undefined)
}

/** Returns a package and everything that depends on it, directly or not. */
export function withDependents(name: string, packages: ReadonlyMap<string, PublishedPackage>): ReadonlySet<string> {
  const found = new Set([name])
  // A set iterates over elements that are added during the iteration.
  for (const dependency of found) {
    for (const [dependent, { manifest }] of packages) {
      if (rangesFor(dependency, manifest).length > 0) found.add(dependent)
    }
  }
  return found
}

interface LockEntry {
  readonly resolved?: string
  readonly link?: boolean
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** The parts of `package-lock.json` that npm changes without a message. */
export interface LockFile {
  /** Every folder below a `node_modules` that is not a link. */
  readonly installed: ReadonlySet<string>
  /** Entries with the address of a registry, or any other URL. */
  readonly urls: readonly string[]
}

export function readLockFile(workspace: string): LockFile {
  const { packages } = JSON.parse(readFileSync(join(workspace, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockEntry>
  }
  const entries = Object.entries(packages)
  return {
    installed: new Set(
      entries.filter(([path, { link }]) => path.includes('node_modules/') && link !== true).map(([path]) => path),
    ),
    urls: entries.filter(([, { resolved }]) => resolved?.includes('://') === true).map(([path]) => path),
  }
}

/** Returns a line for each difference between a lock file written by a release and the one before. */
export function lockFileProblems(before: LockFile, after: LockFile): readonly string[] {
  return [
    ...[...before.installed].filter((path) => !after.installed.has(path)).map((path) => `${path} was dropped`),
    ...[...after.installed].filter((path) => !before.installed.has(path)).map((path) => `${path} was added`),
    ...after.urls.map((path) => `${path} contains the address of a registry`),
  ]
}

/** Returns the entry that Node would find for a package's dependency: the nearest one above. */
function isLocked(name: string, from: string, packages: Readonly<Record<string, LockEntry>>): boolean {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = folder === '.' || folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`
    if (packages[path] !== undefined) return true
    if (folder === '.' || folder === '') return false
  }
}

/** Returns the optional packages that the lock file lacks: npm drops those of other platforms without a message. */
export function missingOptionalPackages(workspace: string): readonly string[] {
  const { packages } = JSON.parse(readFileSync(join(workspace, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockEntry>
  }
  return Object.entries(packages).flatMap(([path, { optionalDependencies }]) =>
    Object.keys(optionalDependencies ?? {})
      .filter((name) => !isLocked(name, path, packages))
      .map((name) => `${name}, wanted by ${path === '' ? 'the workspace' : path}`),
  )
}
