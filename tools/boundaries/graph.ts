import type { PackageBoundary } from './table.ts'
import { BOUNDARIES } from './table.ts'

/** The part of Nx's dependency graph that the check reads. */
export interface Graph {
  readonly nodes: Readonly<Record<string, { readonly data: { readonly root: string } }>>
  readonly dependencies: Readonly<Record<string, readonly Dependency[]>>
}

interface Dependency {
  readonly source: string
  readonly target: string
  readonly sourceFile?: string
}

type Versions = Readonly<Record<string, string>>

export interface Manifest {
  readonly dependencies?: Versions
  readonly peerDependencies?: Versions
  readonly optionalDependencies?: Versions
  readonly devDependencies?: Versions
}

/** Returns a line for each package that depends on more than the table allows. `manifestOf` reads the package.json of a folder. */
export function problemsOf(
  graph: Graph,
  manifestOf: (root: string) => Manifest,
  table: readonly PackageBoundary[] = BOUNDARIES,
): readonly string[] {
  const names = new Set(table.map((row) => row.package))
  const problems = new Set<string>()
  for (const [name, { data }] of Object.entries(graph.nodes)) {
    const row = table.find((one) => one.package === name)
    if (row === undefined) {
      problems.add(`${name} is not in tools/boundaries/table.json`)
      continue
    }
    const manifest = manifestOf(data.root)
    const declared = { ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.optionalDependencies }
    for (const { target, sourceFile } of graph.dependencies[name] ?? []) {
      const isDevelopment = manifest.devDependencies?.[target] !== undefined && declared[target] === undefined
      if (isDevelopment || !names.has(target) || !isShipped(sourceFile)) continue
      if (!row.imports.includes(target)) problems.add(`${name} must not depend on ${target}`)
    }
    for (const target of Object.keys(declared)) {
      if (names.has(target) && !row.imports.includes(target)) problems.add(`${name} must not declare ${target}`)
    }
  }
  return [...problems]
}

/** Tests may use a real engine, a real server and the testkit; the table binds only the code that is published. */
function isShipped(file: string | undefined): boolean {
  return file === undefined || !/(?:^|\/)test\//.test(file)
}
