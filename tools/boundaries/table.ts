import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** One row of the table of packages: which of the project's packages the shipped code of one may import. */
export interface PackageBoundary {
  readonly package: string
  readonly folder: string
  /** True for a package that is never published. Only tests, other private packages and `bundledBy` import it. */
  readonly private: boolean
  /** The published package whose command contains the code of a private one. The table binds that code too. */
  readonly bundledBy: string | undefined
  /** The names of the packages, sorted as in the table. */
  readonly imports: readonly string[]
  /** True if the package may import every package, or every published one if it is published itself. */
  readonly all: boolean
}

interface Row {
  readonly package: string
  readonly folder: string
  readonly private?: true
  readonly bundledBy?: string
  readonly imports: readonly string[] | 'all'
}

const FILE = join(import.meta.dirname, 'table.json')

/** The table of `table.json`. The lint, the check of the dependency graph and docs/architecture.md follow it. */
export const BOUNDARIES: readonly PackageBoundary[] = boundaries(
  JSON.parse(readFileSync(FILE, 'utf8')) as readonly Row[],
)

function boundaries(rows: readonly Row[]): readonly PackageBoundary[] {
  return rows.map((row) => ({
    package: row.package,
    folder: row.folder,
    private: row.private === true,
    bundledBy: row.bundledBy,
    imports:
      row.imports === 'all'
        ? rows
            .filter((other) => other !== row && (row.private === true || isOpenTo(row, other)))
            .map((other) => other.package)
        : row.imports.map((name) => `@signalbox/${name}`),
    all: row.imports === 'all',
  }))
}

function isOpenTo(row: Row, other: Row): boolean {
  return other.private !== true || other.bundledBy === row.package
}

/** Returns a package's name without the scope, as messages and docs/architecture.md write it. */
export function shortName(name: string): string {
  return name.replace(/^@signalbox\//, '')
}
