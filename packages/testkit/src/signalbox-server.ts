import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { MeasuredProcess } from './measured-process.ts'

/** The workspace of this package. */
export const WORKSPACE = fileURLToPath(new URL('../../..', import.meta.url))

export interface ServerOptions {
  readonly storePath: string
  /** The workspace whose server runs. @default the workspace of these tools */
  readonly root?: string | undefined
  readonly core?: number | undefined
  readonly env?: Readonly<Record<string, string>>
  readonly nodeArgs?: readonly string[]
  readonly profiles?: string | undefined
  /** @default true */
  readonly instrumented?: boolean
  readonly wrapper?: readonly string[] | undefined
  /** Starts the built package, with built dependencies, instead of the source. @default false */
  readonly built?: boolean
}

/** The real server as its own process, on free ports. */
export interface SignalboxServer extends AsyncDisposable {
  readonly process: MeasuredProcess
  /** `http://host:port` of the shared listener. */
  readonly http: string
  /** `http://host:port` of the management listener. */
  readonly api: string
}

interface ReadyLine {
  readonly msg: string
  readonly http: string
  readonly api: string
}

function readyLine(line: string): ReadyLine | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const entry = JSON.parse(line) as ReadyLine
    return entry.msg === 'signalbox ready' ? entry : undefined
  } catch {
    return undefined
  }
}

/** Returns the file that starts the server in a workspace: the one of `npm start`, or of the built package. */
export function serverScript(root: string, built: boolean): string {
  if (built) return join(root, 'apps/server/dist/bundle/main.js')
  const script = join(root, 'apps/server/scripts/start.js')
  // Commits that a benchmark compares with may be older than this file.
  return existsSync(script) ? script : join(root, 'apps/server/src/main.ts')
}

/** Returns the arguments of Node with which `npm start` of a workspace, and so its image, starts a server. */
export function nodeArgsOf(root: string): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: { start: string } }
  return scripts.start.split(' ').filter((word) => word.startsWith('--') && !word.startsWith('--conditions='))
}

/** Starts the process without waiting for it to be ready. */
export function spawnSignalbox(options: ServerOptions): MeasuredProcess {
  const root = options.root ?? WORKSPACE
  return new MeasuredProcess({
    script: serverScript(root, options.built ?? false),
    built: options.built ?? false,
    cwd: root,
    core: options.core,
    env: { HTTP_PORT: '0', API_PORT: '0', LOG_LEVEL: 'warn', STORE_PATH: options.storePath, ...options.env },
    nodeArgs: [...nodeArgsOf(root), ...(options.nodeArgs ?? [])],
    profiles: options.profiles,
    instrumented: options.instrumented ?? true,
    wrapper: options.wrapper,
  })
}

/** Resolves when the server reports that it is ready. */
export function startSignalbox(options: ServerOptions): Promise<SignalboxServer> {
  return readySignalbox(spawnSignalbox(options))
}

/** Like {@link startSignalbox}, for a process that was started before. */
export async function readySignalbox(process: MeasuredProcess): Promise<SignalboxServer> {
  const { http, api } = await process.line(readyLine)
  return { process, http, api, [Symbol.asyncDispose]: () => process[Symbol.asyncDispose]() }
}
