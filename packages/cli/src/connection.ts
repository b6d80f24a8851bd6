import { readFileSync } from 'node:fs'

import type { Signalbox } from '@signalbox/client'
import { connect } from '@signalbox/client'

import type { CommandCall } from './command.ts'
import type { Context } from './contexts.ts'
import { checkedUrl, contextsWarning, DEFAULT_URL, readContexts } from './contexts.ts'
import { CommandError } from './errors.ts'
import { ManagementClient } from './management-client.ts'
import { warn } from './terminal.ts'
import type { CommandTls } from './tls.ts'

const DEFAULT_API = 'http://127.0.0.1:8080'

/** The repeats of calls and sends: a person who waits wants to see a stopped server soon. */
const REPEATS = { retries: 2, retryFor: '500ms' } as const

/** The server that a command talks to. */
export interface Connection {
  readonly url: string
  /** The management URL; `undefined` if the user gave none and it cannot be derived. */
  readonly api: string | undefined
  readonly token: string | undefined
  readonly tls: CommandTls
  /** The token for the management URL. */
  readonly apiToken: string | undefined
  /** The TLS for the management URL. */
  readonly apiTls: CommandTls
}

/**
 * Returns the server of a command. Options take precedence over the environment, and both over the context.
 * @throws CommandError CONFIG_INVALID
 */
export async function connectionOf(call: CommandCall): Promise<Connection> {
  const { line, io } = call
  const { env } = io
  const context = contextOf(call)
  const url = checkedUrl('--url', line.value('url') || env['SIGNALBOX_URL'] || context?.url || DEFAULT_URL)
  const own = context !== undefined && sameOrigin(url, context.url)
  const given = line.value('api') || env['SIGNALBOX_API_URL'] || (own ? context.api : undefined)
  const api = given === undefined ? derivedApi(url) : checkedUrl('--api', given)
  // The token and the certificate of a context are for its server only: another URL must not get them.
  const explicit = line.value('token') || env['SIGNALBOX_TOKEN'] || undefined
  const ownApi =
    own && (api === undefined || given === undefined || (context.api !== undefined && sameOrigin(api, context.api)))
  return {
    url,
    api,
    token: explicit ?? (own ? tokenOf(context) : undefined),
    tls: await tlsOf(call, own ? context : undefined),
    apiToken: explicit ?? (ownApi ? tokenOf(context) : undefined),
    apiTls: await tlsOf(call, ownApi ? context : undefined),
  }
}

/** Returns a client of the server. The caller disposes of it. */
export async function connectClient(call: CommandCall): Promise<Signalbox> {
  const { url, token, tls } = await connectionOf(call)
  if (token !== undefined) await warnOfClearText(call, url)
  return connect(url, {
    ...REPEATS,
    source: '/signalbox/cli',
    signal: call.io.signal,
    onError: (error) => void warn(call.io, `signalbox: ${messageOf(error)}`),
    token,
    fetch: tls.fetch,
  })
}

/** Returns a client of the management listener. @throws CommandError CONFIG_INVALID if its URL is not known */
export async function connectManagement(call: CommandCall): Promise<ManagementClient> {
  const { api, apiToken: token, apiTls: tls } = await connectionOf(call)
  if (api === undefined) {
    throw new CommandError('CONFIG_INVALID', [
      `${call.line.command}: --api is missing; write --api=URL with the URL of the management listener, or add it to the context`,
    ])
  }
  if (token !== undefined) await warnOfClearText(call, api)
  return new ManagementClient({ url: api, token, tls, signal: call.io.signal })
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns `true` if only this machine can be at the URL. */
export function isLoopbackUrl(url: string): boolean {
  return /^(?:localhost|\[::1\]|127(?:\.\d+){3})$/.test(new URL(url).hostname)
}

/** Returns the context of a command. @throws CommandError CONFIG_INVALID */
export function contextOf({ line, io }: CommandCall): Context | undefined {
  const name = line.value('context') || io.env['SIGNALBOX_CONTEXT'] || undefined
  const { current, byName } = readContexts(io)
  if (name === undefined) return current === undefined ? undefined : byName.get(current)
  const context = byName.get(name)
  if (context !== undefined) return context
  const known = byName.size === 0 ? 'there is none; add one with signalbox context add' : [...byName.keys()].join(', ')
  throw new CommandError('CONFIG_INVALID', [`--context is ${JSON.stringify(name)}; allowed are ${known}`])
}

function tokenOf({ token, tokenFile }: Context): string | undefined {
  if (tokenFile === undefined) return token
  try {
    return readFileSync(tokenFile, 'utf8').trim()
  } catch (error) {
    throw new CommandError('CONFIG_INVALID', [`the token file of the context cannot be read: ${messageOf(error)}`], {
      cause: error,
    })
  }
}

function sameOrigin(a: string, b: string): boolean {
  return URL.canParse(b) && new URL(a).origin === new URL(b).origin
}

/** On this machine the management listener has its usual port. The listener of another machine is usually not open to this one. */
function derivedApi(url: string): string | undefined {
  return url === DEFAULT_URL || url === 'http://localhost:9090' ? DEFAULT_API : undefined
}

async function warnOfClearText({ line, io }: CommandCall, url: string): Promise<void> {
  const warning = contextsWarning(io)
  if (warning !== undefined) await warn(io, `signalbox ${line.command}: ${warning}`)
  if (url.startsWith('https:') || isLoopbackUrl(url)) return
  await warn(io, `signalbox ${line.command}: the token crosses the network in clear text: use https, not http`)
}

/**
 * Reads the TLS of a command. Options take precedence over the environment, and both over the context.
 * @throws CommandError CONFIG_INVALID for files that cannot be used
 */
export async function tlsOf({ line, io: { env } }: CommandCall, context?: Context): Promise<CommandTls> {
  const files = {
    caFile: line.value('ca-file') || env['SIGNALBOX_CA_FILE'] || context?.caFile,
    certFile: line.value('cert-file') || env['SIGNALBOX_CERT_FILE'] || context?.certFile,
    keyFile: line.value('key-file') || env['SIGNALBOX_KEY_FILE'] || context?.keyFile,
  }
  if (!files.caFile && !files.certFile && !files.keyFile) return { tls: undefined, fetch: (...call) => fetch(...call) }
  // Loaded only now: most commands need no files.
  const { fetchWith, readClientTls } = await import('./tls.ts')
  try {
    const tls = readClientTls(files)
    return { tls, fetch: fetchWith(tls) }
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    throw new CommandError('CONFIG_INVALID', [`${line.command}: ${problem}`], { cause: error })
  }
}
