import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

type Ranges = Readonly<Record<string, string>>

/** The parts of a manifest that a release reads or changes. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly private?: boolean
  readonly dependencies?: Ranges
  readonly devDependencies?: Ranges
  readonly peerDependencies?: Ranges
  readonly optionalDependencies?: Ranges
}

/** A published package: its manifest, and its folder relative to the workspace. */
export interface PublishedPackage {
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

/** The versions of packages, by name. */
export type Versions = ReadonlyMap<string, string>

export function versions(workspace: string): Versions {
  return new Map([...publishedPackages(workspace)].map(([name, { manifest }]) => [name, manifest.version]))
}

/** Every range that a manifest gives for a package. A development dependency counts for Nx as much as any other. */
export function rangesFor(name: string, manifest: Manifest): readonly string[] {
  const { dependencies, devDependencies, peerDependencies, optionalDependencies } = manifest
  return [dependencies, devDependencies, peerDependencies, optionalDependencies]
    .map((ranges) => ranges?.[name])
    .filter((range) => range !== undefined)
}

/** Returns a package and everything that depends on it, directly or not. */
export function withDependents(name: string, packages: ReadonlyMap<string, PublishedPackage>): ReadonlySet<string> {
  const found = new Set([name])
  // A set hands out what is added while it is iterated.
  for (const dependency of found) {
    for (const [dependent, { manifest }] of packages) {
      if (rangesFor(dependency, manifest).length > 0) found.add(dependent)
    }
  }
  return found
}
