import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface LockEntry {
  readonly resolved?: string
  readonly link?: boolean
}

/** The facts about `package-lock.json` that npm changes without a word. */
export interface LockFile {
  /** Every folder below a `node_modules` that is not a link. */
  readonly installed: ReadonlySet<string>
  /** Entries that name a registry, or any other URL. */
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

/** Returns a line for each way in which a lock file written by a release differs from the one before. */
export function lockFileProblems(before: LockFile, after: LockFile): readonly string[] {
  return [
    ...[...before.installed].filter((path) => !after.installed.has(path)).map((path) => `${path} was dropped`),
    ...[...after.installed].filter((path) => !before.installed.has(path)).map((path) => `${path} was added`),
    ...after.urls.map((path) => `${path} names a registry`),
  ]
}
