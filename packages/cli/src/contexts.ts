import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'

import type { CommandCall } from './command.ts'
import type { ExitCode } from './errors.ts'
import { CommandError, EXIT } from './errors.ts'
import { isObject } from './json.ts'
import { printResult, table } from './output.ts'
import type { CommandIo } from './terminal.ts'

/** `signalbox context add`: saves a server under a name. */
export async function contextAddCommand(call: CommandCall): Promise<void> {
  const { line, io } = call
  const name = line.word(0)
  if (!/^[\w.-]{1,64}$/.test(name)) throw line.invalid('NAME', name, '1 to 64 letters, digits, and . _ -')
  const api = line.value('api')
  const tokenFile = line.value('token-file')
  if (tokenFile !== undefined && line.has('token'))
    throw line.invalid('--token-file', tokenFile, 'either --token or --token-file')
  const [caFile, certFile, keyFile] = ['ca-file', 'cert-file', 'key-file'].map((option) => line.value(option))
  const token = line.value('token') === '-' ? await firstLine(io) : line.value('token')
  const context: Context = {
    url: checkedUrl('--url', line.option('url')),
    api: api === undefined ? undefined : checkedUrl('--api', api),
    token,
    tokenFile: tokenFile && resolve(tokenFile),
    caFile: caFile && resolve(caFile),
    certFile: certFile && resolve(certFile),
    keyFile: keyFile && resolve(keyFile),
  }
  const { current, byName } = readContexts(io)
  writeContexts(io, { current: current ?? name, byName: new Map([...byName, [name, context]]) })
  await printResult(
    call,
    { name, file: contextsFile(io), current: (current ?? name) === name },
    `${name} is saved in ${contextsFile(io)}`,
  )
}

/** `signalbox context use`: makes a context the current one. */
export async function contextUseCommand(call: CommandCall): Promise<void> {
  const { line, io } = call
  const { byName } = contextsWith(call)
  writeContexts(io, { current: line.word(0), byName })
  await printResult(call, { name: line.word(0), current: true }, `${line.word(0)} is the current context`)
}

/** `signalbox context rm`: removes a context. */
export async function contextRemoveCommand(call: CommandCall): Promise<void> {
  const { line, io } = call
  const { current, byName } = contextsWith(call)
  const left = new Map(byName)
  left.delete(line.word(0))
  writeContexts(io, { current: current === line.word(0) ? undefined : current, byName: left })
  await printResult(call, { name: line.word(0), removed: true }, `${line.word(0)} is removed`)
}

/** `signalbox context ls`: lists the contexts. The current one has a star. */
export async function contextListCommand({ line, io }: CommandCall): Promise<ExitCode> {
  const { current, byName } = readContexts(io)
  const contexts = [...byName]
  if (line.has('json')) {
    for (const [name, { url, api, token, tokenFile }] of contexts) {
      const shape = { name, url, api, has_token: token !== undefined, token_file: tokenFile, current: name === current }
      await io.stdout.write(`${JSON.stringify(shape)}\n`)
    }
  } else {
    const rows = contexts.map(([name, { url, api = '', token, tokenFile }]) => [
      `${name === current ? '*' : ' '} ${name}`,
      url,
      api,
      token === undefined ? (tokenFile ?? '') : 'token',
    ])
    for (const row of table(rows)) await io.stdout.write(`${row}\n`)
  }
  return contexts.length === 0 ? EXIT.NOTHING : EXIT.OK
}

function contextsWith({ line, io }: CommandCall): Contexts {
  const contexts = readContexts(io)
  if (contexts.byName.has(line.word(0))) return contexts
  const known = [...contexts.byName.keys()].join(', ')
  throw new CommandError('CONFIG_INVALID', [
    `${line.command}: there is no context ${JSON.stringify(line.word(0))}; ${known === '' ? 'add one with signalbox context add' : `allowed are ${known}`}`,
  ])
}

async function firstLine({ stdin }: CommandIo): Promise<string> {
  let text = ''
  for await (const chunk of stdin) text += Buffer.from(chunk).toString()
  return text.trim()
}

/** The shared listener of a server on this machine with default settings. */
export const DEFAULT_URL = 'http://127.0.0.1:9090'

/** Returns the URL without a final slash. @throws CommandError CONFIG_INVALID */
export function checkedUrl(name: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && /^https?:$/.test(url.protocol) && `${url.username}${url.password}${url.search}` === '') {
    return url.href.replace(/\/$/, '')
  }
  throw new CommandError('CONFIG_INVALID', [
    `${name} is ${JSON.stringify(text)}; allowed is an http or https URL without credentials, such as ${DEFAULT_URL}`,
  ])
}

/** A server that commands talk to. */
export interface Context {
  /** The URL of the shared listener. */
  readonly url: string
  /** The URL of the management listener. */
  readonly api: string | undefined
  readonly token: string | undefined
  /** A file with the token, read for each command: a token in it can be renewed. */
  readonly tokenFile: string | undefined
  /** The files of the TLS to the server, read for each command. */
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
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
 * @throws CommandError CONFIG_INVALID for a file that is not readable or has another form
 */
export function readContexts(io: Pick<CommandIo, 'env'>): Contexts {
  const file = contextsFile(io)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return NONE
    throw new CommandError('CONFIG_INVALID', [`${file}: cannot be read (${codeOf(error)})`], { cause: error })
  }
  const contexts = parse(text)
  if (contexts === undefined) {
    throw new CommandError('CONFIG_INVALID', [
      `${file}: it is not a file of contexts; remove it and add the contexts again`,
    ])
  }
  return contexts
}

/**
 * Writes the user's contexts to a file that only the user can read.
 * @throws CommandError START_FAILED if it cannot be written
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
    throw new CommandError('START_FAILED', [`${file}: cannot be written (${codeOf(error)})`], { cause: error })
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
      api: textOr(api),
      token: textOr(token),
      tokenFile: textOr(tokenFile),
      caFile: textOr(caFile),
      certFile: textOr(certFile),
      keyFile: textOr(keyFile),
    })
  }
  const { current } = value
  return { current: typeof current === 'string' && byName.has(current) ? current : undefined, byName }
}

function textOr(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
