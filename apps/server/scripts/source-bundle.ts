// cspell:ignore tdigest bintrees
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const BUNDLES = join(ROOT, 'node_modules/.cache/signalbox-source')

/** The time for which a run of tests may use the bundle of an earlier state of the source, in milliseconds. */
const KEPT_MS = 86_400_000

/** The libraries in the bundle, besides the packages of the workspace. */
const INSIDE: ReadonlySet<string> = new Set([
  'typebox',
  'prom-client',
  '@opentelemetry/api',
  'tdigest',
  'bintrees',
  'eventsource-parser',
])

/** Returns `true` for a library that npm installs next to the bundle. */
export function isOutside(id: string): boolean {
  const [name = id] = /^(?:@[^/]+\/)?[^/]+/.exec(id) ?? []
  return !id.startsWith('/') && !id.startsWith('.') && !name.startsWith('@signalbox/') && !INSIDE.has(name)
}

/**
 * Bundles the source of the server and the command line, unless that was done for this state of the source, and returns
 * the file to run. From the bundle a server starts with half the CPU time, and a command with a third: there are more
 * than 1,200 files.
 */
export async function sourceBundle(): Promise<string> {
  const folder = join(BUNDLES, stateOfSource())
  if (!existsSync(folder)) {
    mkdirSync(BUNDLES, { recursive: true })
    removeOld()
    const making = mkdtempSync(join(BUNDLES, 'making-'))
    await bundle(making)
    // Another run may have made the same bundle in the meantime.
    if (existsSync(folder)) rmSync(making, { recursive: true })
    else renameSync(making, folder)
  }
  return join(folder, 'main.js')
}

function stateOfSource(): string {
  const files = globSync(
    ['package-lock.json', '{packages,apps}/*/{package.json,src/**/*.ts}', 'apps/server/scripts/*'],
    {
      cwd: ROOT,
    },
  )
  const hash = createHash('sha256')
  for (const file of files.toSorted()) {
    const { mtimeMs, size } = statSync(join(ROOT, file))
    hash.update(`${file} ${mtimeMs} ${size}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}

function removeOld(): void {
  for (const name of readdirSync(BUNDLES)) {
    const folder = join(BUNDLES, name)
    if (Date.now() - statSync(folder).mtimeMs > KEPT_MS) rmSync(folder, { recursive: true })
  }
}

async function bundle(folder: string): Promise<void> {
  const { build } = await import('rolldown')
  await build({
    input: {
      main: join(ROOT, 'apps/server/src/main.ts'),
      'yaml-thread': join(ROOT, 'apps/server/src/files/yaml-thread.ts'),
      'export-thread': join(ROOT, 'apps/server/src/telemetry/export-thread.ts'),
      'writer-thread': join(ROOT, 'packages/engine-embedded/src/writer/writer-thread.ts'),
      'large-thread': join(ROOT, 'packages/engine-nats/src/large/large-thread.ts'),
    },
    platform: 'node',
    resolve: { conditionNames: ['@signalbox/source', 'node', 'import'] },
    external: isOutside,
    plugins: [
      {
        name: 'own-urls',
        // Manifests and pages are found from the source. Worker threads are in the bundle.
        transform(code, id) {
          if (id.startsWith('\0') || !code.includes('import.meta.url') || code.includes('startThread('))
            return undefined
          return { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)) }
        },
      },
    ],
    output: { dir: folder, format: 'esm', entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
  })
  // In node_modules a file inherits no type. Without one, Node parses each file to see that it is a module.
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
}
