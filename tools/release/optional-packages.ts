import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface LockEntry {
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** The entry that Node would find for a package's dependency: the nearest one above. */
function isLocked(name: string, from: string, packages: Readonly<Record<string, LockEntry>>): boolean {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = folder === '.' || folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`
    if (packages[path] !== undefined) return true
    if (folder === '.' || folder === '') return false
  }
}

/** Returns the optional packages that the lock file lacks: npm drops those of other platforms without a word. */
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
