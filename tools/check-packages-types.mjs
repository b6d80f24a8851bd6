// Types as TypeScript users resolve them, by Are The Types Wrong, on the packed tarball.
import { readFileSync } from 'node:fs'

import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'

/** Packages are ESM only: without `exports` support, and from CommonJS before Node 20.19, they cannot be loaded at all. */
const UNSUPPORTED = new Set(['node10', 'node16-cjs'])

/** Returns one line per problem; none for a clean package. */
export async function typeProblems(tarball) {
  const { types, problems } = await checkPackage(createPackageFromTarballData(readFileSync(tarball)))
  if (types === false) return ['the package has no types']
  return problems
    .filter(({ resolutionKind }) => !UNSUPPORTED.has(resolutionKind))
    .map(({ kind, entrypoint, resolutionKind }) => [kind, entrypoint, resolutionKind].filter(Boolean).join(' '))
}
