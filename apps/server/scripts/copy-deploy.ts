import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Copies the deployment files into the package, where `signalbox init` finds them. The copies name the version of the
 * package: a release changes the manifest alone.
 */
const source = fileURLToPath(new URL('../../../deploy/', import.meta.url))
const target = fileURLToPath(new URL('../dist/deploy/', import.meta.url))

/** The files that install a version of Signalbox. */
const VERSIONED = [
  'docker/Dockerfile',
  'compose/embedded/compose.yaml',
  'compose/nats/compose.yaml',
  'systemd/signalbox.service',
  'kubernetes/signalbox/Chart.yaml',
]

const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
)
const [, written] = /^appVersion: (\S+)$/m.exec(readFileSync(`${source}kubernetes/signalbox/Chart.yaml`, 'utf8')) ?? []
if (written === undefined) throw new Error('Chart.yaml has no appVersion')

rmSync(target, { recursive: true, force: true })
// Packages that an image was built from are of this machine alone.
cpSync(source, target, { recursive: true, filter: (file) => !file.endsWith('.tgz') })
for (const file of VERSIONED) {
  const text = readFileSync(`${target}${file}`, 'utf8')
  if (!text.includes(written))
    throw new Error(`deploy/${file} does not name version ${written}, which Chart.yaml names`)
  writeFileSync(`${target}${file}`, text.replaceAll(written, manifest.version))
}
