import { cpSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Copies the deployment files into the package, where `signalbox init` finds them. */
const source = fileURLToPath(new URL('../../../deploy/', import.meta.url))
const target = fileURLToPath(new URL('../dist/deploy/', import.meta.url))

rmSync(target, { recursive: true, force: true })
// Packages that an image was built from are of this machine alone.
cpSync(source, target, { recursive: true, filter: (file) => !file.endsWith('.tgz') })
