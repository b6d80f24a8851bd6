import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import type { InputOptions, Plugin } from 'rolldown'
import { build } from 'rolldown'

import { partsOf } from './bundle-parts.ts'
import { isOutside } from './source-bundle.ts'

/**
 * Bundles the built server and the built packages of the workspace into a few files,
 * `dist/bundle/`, which the published command runs. Of a start, most time is spent on finding and
 * reading files: without the bundle there are more than 1,200.
 *
 * Libraries stay outside the bundle and are installed by npm, except a few without native code:
 * TypeBox, of which a server needs a part of its 540 files, the metrics library with 90 files, and
 * the parser of event streams, of which a folder of dependencies may have two versions.
 */

const PACKAGE = fileURLToPath(new URL('../', import.meta.url))
const OUTPUT = join(PACKAGE, 'dist/bundle')

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly dependencies: Readonly<Record<string, string>>
}

function readManifest(folder: string): Manifest | undefined {
  try {
    const manifest: Manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return manifest
  } catch {
    return undefined
  }
}

const server = readManifest(PACKAGE)
if (server === undefined) throw new Error(`${PACKAGE} has no package.json`)

/** Returns the folder of the package that contains a file. */
function packageFolder(file: string): Manifest & { folder: string } {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const manifest = readManifest(folder)
    if (manifest) return { ...manifest, folder }
    if (folder === dirname(folder)) throw new Error(`${file} is in no package`)
  }
}

/**
 * Keeps `import.meta.url` the URL of the module in its own package: manifests, and dependencies that
 * are loaded later, are found from there. Worker threads are in the bundle.
 */
const ownUrls: Plugin = {
  name: 'own-urls',
  transform(code, id) {
    // The bundler's own modules have names that start with a null character.
    if (id.startsWith('\0')) return undefined
    if (!code.includes('import.meta.url') || code.includes('startThread(')) return undefined
    const { folder, name, private: isPrivate } = packageFolder(id)
    if (isPrivate) throw new Error(`${id} uses import.meta.url, but ${name} is not installed with the command`)
    const path = JSON.stringify(`./${relative(folder, id)}`)
    const manifest = JSON.stringify(`${name}/package.json`)
    return { code: code.replaceAll('import.meta.url', `new URL(${path}, import.meta.resolve(${manifest})).href`) }
  },
}

function built(file: string): string {
  return join(PACKAGE, 'dist', file)
}

const EMBEDDED = fileURLToPath(import.meta.resolve('@signalbox/engine-embedded'))
/** What the command line loads for a server, for the demo, and for the commands on a store: most of what a server loads. */
const OF_SERVER = ['run-server.js', 'server.js', 'engine/engines.js', 'config/load.js', 'config/flags.js']
const NATS = fileURLToPath(import.meta.resolve('@signalbox/engine-nats'))
const WRITER = join(dirname(EMBEDDED), 'writer/writer-thread.js')

const input: InputOptions = {
  input: {
    main: built('main.js'),
    'yaml-thread': built('files/yaml-thread.js'),
    'export-thread': built('telemetry/export-thread.js'),
    'writer-thread': WRITER,
    'large-thread': join(dirname(NATS), 'large/large-thread.js'),
  },
  platform: 'node',
  external: isOutside,
  plugins: [ownUrls],
}

const smallest = await build({ ...input, write: false })
const parts = partsOf(smallest.output, {
  steps: [
    { part: 'start', modules: [built('run-server.js')] },
    { part: 'embedded', modules: [EMBEDDED] },
    { part: 'server', modules: [built('server.js'), built('metrics/process.js')] },
  ],
  apart: [
    { part: 'common', module: built('cli.js'), except: OF_SERVER.map(built) },
    { part: 'store', module: WRITER, except: [] },
  ],
})
rmSync(OUTPUT, { recursive: true, force: true })
const { output } = await build({
  ...input,
  preserveEntrySignatures: 'allow-extension',
  output: {
    dir: OUTPUT,
    format: 'esm',
    comments: false,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    codeSplitting: {
      groups: [{ debugName: 'parts', name: (id) => parts.get(id) ?? null, includeDependenciesRecursively: false }],
    },
  },
})

const others = new Map<string, string>()
for (const chunk of output) {
  if (chunk.type !== 'chunk') continue
  for (const id of chunk.moduleIds.filter((file) => file.includes('/node_modules/'))) {
    const { folder, name } = packageFolder(id)
    others.set(name, folder)
  }
  for (const id of [...chunk.imports, ...chunk.dynamicImports]) {
    const [, name = id] = /^((?:@[^/]+\/)?[^/]+)/.exec(id) ?? []
    if (isBuiltin(id) || name.endsWith('.js') || name in server.dependencies) continue
    throw new Error(`the bundle imports ${name}; add it to the dependencies of ${server.name}`)
  }
}

/** Returns the license of a package: it must accompany copies of its code. */
function licenseOf(folder: string): string {
  const file = readdirSync(folder).find((name) => /^license/i.test(name))
  if (file === undefined) throw new Error(`${folder} has no license file`)
  return readFileSync(join(folder, file), 'utf8').trim()
}

const licenses = [...others].map(([name, folder]) => `${name}\n\n${licenseOf(folder)}\n`)
writeFileSync(join(OUTPUT, 'LICENSES'), licenses.join('\n---\n\n'))
