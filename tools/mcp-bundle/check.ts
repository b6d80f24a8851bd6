import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { text } from 'node:stream/consumers'

import { strFromU8, unzipSync } from 'fflate'

import type { Files } from './bundle.ts'
import { schemaProblems } from './server-json.ts'

/** The parts of the manifest that the check reads. */
interface Manifest {
  readonly manifest_version: string
  readonly name: string
  readonly version: string
  readonly description: string
  readonly icon?: string
  readonly author: { readonly name: string }
  readonly server: {
    readonly entry_point: string
    readonly mcp_config: { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }
  }
  readonly user_config: Readonly<Record<string, { readonly default?: unknown }>>
}

/** The parts of server.json that the check reads. */
export interface RegistryEntry {
  readonly name: string
  readonly description: string
  readonly version: string
  readonly packages: readonly {
    readonly registryType: string
    readonly version?: string
    readonly fileSha256?: string
  }[]
}

const EXACT_VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/

/** Returns the problems of a bundle and of its registry entry, each as one line. */
export function problemsOf(bundle: Buffer, entry: RegistryEntry): readonly string[] {
  const files: Files = unzipSync(bundle)
  const manifest = JSON.parse(decoded(files['manifest.json']) || '{}') as Manifest
  return [...manifestProblems(manifest, files), ...importProblems(files), ...entryProblems(entry, manifest, bundle)]
}

function decoded(content: Uint8Array | undefined): string {
  return content === undefined ? '' : strFromU8(content)
}

function manifestProblems(manifest: Manifest, files: Files): readonly string[] {
  const { server, user_config: settings, version } = manifest
  const problems: string[] = []
  if (manifest.manifest_version !== '0.3') problems.push('manifest_version must be 0.3')
  if (!/^[a-z0-9-]+$/.test(manifest.name)) problems.push(`name: ${manifest.name}`)
  if (!EXACT_VERSION.test(version)) problems.push(`version: ${version}`)
  if (!/^.PNG/.test(strFromU8(files[manifest.icon ?? '']?.subarray(0, 4) ?? new Uint8Array(), true)))
    problems.push(`icon: ${manifest.icon} is not a PNG file of the bundle`)
  if (!(server.entry_point in files)) problems.push(`entry_point: the bundle has no ${server.entry_point}`)
  const { args, env } = server.mcp_config
  if (args[0] !== `\${__dirname}/${server.entry_point}`) problems.push(`args do not start ${server.entry_point}`)
  for (const value of Object.values(env)) {
    const setting = /^\$\{user_config\.(\w+)\}$/.exec(value)?.[1]
    // A host that has no value for a setting may pass the placeholder itself.
    if (setting === undefined || settings[setting]?.default === undefined) problems.push(`env: ${value} has no default`)
  }
  return problems
}

/** Every module must be in the bundle or in Node. */
function importProblems(files: Files): readonly string[] {
  return Object.entries(files)
    .filter(([path]) => path.endsWith('.js'))
    .flatMap(([path, content]) => {
      const imports = decoded(content).matchAll(/^(?:import|export) (?:[\w\s{},*$]+ from )?'([^']+)'/gm)
      return [...imports].flatMap(([, name = '']) => {
        const isThere = name.startsWith('.') ? posix.join(posix.dirname(path), name) in files : name.startsWith('node:')
        return isThere ? [] : [`${path} imports ${name}, which the bundle does not have`]
      })
    })
}

function entryProblems(entry: RegistryEntry, manifest: Manifest, bundle: Buffer): readonly string[] {
  const problems: string[] = [...schemaProblems(entry)]
  for (const version of [entry.version, ...entry.packages.flatMap((one) => one.version ?? [])]) {
    if (version !== manifest.version)
      problems.push(`server.json: version ${version}; the bundle has ${manifest.version}`)
  }
  const hash = createHash('sha256').update(bundle).digest('hex')
  for (const { registryType, fileSha256 } of entry.packages) {
    if (registryType === 'mcpb' && fileSha256 !== hash)
      problems.push('server.json: fileSha256 is not that of the bundle')
  }
  return problems
}

/** Writes the files of a bundle to a folder, as a host does. Returns the program that the host starts. */
export function unpack(bundle: Buffer, folder: string): string {
  for (const [path, content] of Object.entries(unzipSync(bundle))) {
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  return join(folder, 'server/index.js')
}

/**
 * Starts the program of an unpacked bundle without a server, and returns its answer to a request: an error that says
 * so, if the program runs.
 */
export async function answerWithoutServer(program: string): Promise<string> {
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, [program], {
    // Port 9 of the loopback interface, "discard", has no server.
    env: { PATH, SIGNALBOX_URL: 'http://127.0.0.1:9/mcp' },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
  return text(child.stdout)
}
