import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'

import { ServerError } from '../errors.ts'
import type { CommandIo } from './command-io.ts'
import { isObject } from './json.ts'

/** A server that commands talk to. */
export interface Context {
  /** The URL of the shared listener. */
  readonly url: string
  /** The URL of the management listener. */
  readonly api?: string
  readonly token?: string
  /** A file with the token, read for each command: a token in it can be renewed. */
  readonly tokenFile?: string
  /** The files of the TLS to the server, read for each command. */
  readonly caFile?: string
  readonly certFile?: string
  readonly keyFile?: string
}

/** The contexts of a user, and the name of the current one. */
export interface Contexts {
  readonly current: string | undefined
  readonly byName: ReadonlyMap<string, Context>
}

const NONE: Contexts = { current: undefined, byName: new Map() }

/** Returns the file of the user's contexts. */
export function contextsFile({ env }: Pick<CommandIo, 'env'>): string {
  const folder =
    env['XDG_CONFIG_HOME'] ||
    (process.platform === 'win32' ? env['APPDATA'] : undefined) ||
    join(env['HOME'] || homedir(), '.config')
  return join(folder, 'signalbox', 'contexts.json')
}

/**
 * Reads the user's contexts. A file that does not exist has none.
 * @throws ServerError CONFIG_INVALID for a file that is not readable or has another form
 */
export function readContexts(io: Pick<CommandIo, 'env'>): Contexts {
  const file = contextsFile(io)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return NONE
    throw new ServerError('CONFIG_INVALID', [`${file}: cannot be read (${codeOf(error)})`], { cause: error })
  }
  const contexts = parse(text)
  if (contexts === undefined) {
    throw new ServerError('CONFIG_INVALID', [
      `${file}: it is not a file of contexts; remove it and add the contexts again`,
    ])
  }
  return contexts
}

/**
 * Writes the user's contexts to a file that only the user can read.
 * @throws ServerError START_FAILED if it cannot be written
 */
export function writeContexts(io: Pick<CommandIo, 'env'>, { current, byName }: Contexts): void {
  const file = contextsFile(io)
  const contexts = Object.fromEntries(
    [...byName].map(([name, { url, api, token, tokenFile, caFile, certFile, keyFile }]) => [
      name,
      { url, api, token, token_file: tokenFile, ca_file: caFile, cert_file: certFile, key_file: keyFile },
    ]),
  )
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const next = `${file}.${process.pid}`
    writeFileSync(next, `${JSON.stringify({ current, contexts }, undefined, 2)}\n`, { mode: 0o600 })
    // The mode of a file that existed is not changed by writing.
    chmodSync(next, 0o600)
    renameSync(next, file)
  } catch (error) {
    throw new ServerError('START_FAILED', [`${file}: cannot be written (${codeOf(error)})`], { cause: error })
  }
}

/** Returns a warning if other users can read the tokens of the file. */
export function contextsWarning(io: Pick<CommandIo, 'env'>): string | undefined {
  if (process.platform === 'win32') return undefined
  const file = contextsFile(io)
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & 0o077) === 0 ? undefined : `other users can read ${file}; run chmod 600 on it`
}

function parse(text: string): Contexts | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(value) || !isObject(value['contexts'])) return undefined
  const byName = new Map<string, Context>()
  for (const [name, context] of Object.entries(value['contexts'])) {
    if (!isObject(context)) return undefined
    const { url, api, token, token_file: tokenFile } = context
    const { ca_file: caFile, cert_file: certFile, key_file: keyFile } = context
    if (typeof url !== 'string') return undefined
    byName.set(name, {
      url,
      ...(typeof api === 'string' ? { api } : {}),
      ...(typeof token === 'string' ? { token } : {}),
      ...(typeof tokenFile === 'string' ? { tokenFile } : {}),
      ...(typeof caFile === 'string' ? { caFile } : {}),
      ...(typeof certFile === 'string' ? { certFile } : {}),
      ...(typeof keyFile === 'string' ? { keyFile } : {}),
    })
  }
  const { current } = value
  return { current: typeof current === 'string' && byName.has(current) ? current : undefined, byName }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
