import { SignalboxError } from '@signalbox/client'

import type { CommandCall } from './command.ts'
import type { Connection } from './connection.ts'
import { connectionOf, isLoopbackUrl } from './connection.ts'
import type { ExitCode } from './errors.ts'
import { EXIT } from './errors.ts'
import { failureOf } from './failure.ts'
import type { JsonObject } from './json.ts'
import { isObject, numberOf, objectsOf, toText } from './json.ts'
import { causeOf, ManagementClient } from './management-client.ts'
import type { Check } from './output.ts'
import { CheckList } from './output.ts'
import type { CommandTls } from './tls.ts'
import { tlsRemedy } from './tls.ts'

/** The longest time of one request, in ms. */
const TIMEOUT_MS = 10_000

/** The clocks of both machines may differ by this much, in ms: tokens are checked against the server's. */
const CLOCK_MS = 5_000

/** `signalbox doctor`: checks whether a server is reachable, healthy, safe and current. */
export async function doctorCommand(call: CommandCall): Promise<ExitCode> {
  const connection = await connectionOf(call)
  const checks = new CheckList(call)
  if (await checkShared(call, connection, checks)) {
    await checkCallers(call, connection, checks)
    await checkManagement(call, connection, checks)
  }
  return checks.exit
}

interface Answer {
  readonly status: number
  readonly date: number
  readonly ms: number
  readonly json: JsonObject
}

async function ask({ io }: CommandCall, { fetch }: CommandTls, url: string, init: RequestInit = {}): Promise<Answer> {
  const begun = performance.now()
  const signal = AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), io.signal])
  const response = await fetch(url, { ...init, redirect: 'error', signal })
  const ms = Math.round(performance.now() - begun)
  const text = await response.text()
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    json = undefined
  }
  return {
    status: response.status,
    date: Date.parse(response.headers.get('date') ?? ''),
    ms,
    json: isObject(json) ? json : {},
  }
}

/** Returns `false` if the server cannot be reached: nothing else can be checked. */
async function checkShared(call: CommandCall, { url, tls }: Connection, checks: CheckList): Promise<boolean> {
  let state: Answer
  try {
    state = await ask(call, tls, `${url}/ready`)
  } catch (error) {
    if (call.io.signal.aborted) throw error
    const remedy = tlsRemedy(error, url) ?? 'check that the server runs, and that --url is its shared listener'
    const detail = `${url} cannot be reached${causeOf(error)}; ${remedy}`
    await checks.add({ name: 'reachable', state: 'failed', detail, exit: EXIT.UNREACHABLE })
    return false
  }
  const { json, ms, date } = state
  if (typeof json['ready'] !== 'boolean') {
    const detail = `${url}/ready answered with HTTP ${state.status} and no state; check that --url is the URL of a Signalbox server`
    await checks.add({ name: 'reachable', state: 'failed', detail })
    return false
  }
  await checks.add({ name: 'reachable', state: 'ok', detail: `${url} answers in ${ms} ms` })
  const failing = objectsOf(json['checks']).filter(({ ok }) => ok !== true)
  const problems = failing.map(({ name, detail }) => `${toText(name)}: ${toText(detail)}`).join('; ')
  const ready = json['ready'] && json['healthy'] === true
  await checks.add({
    name: 'healthy',
    state: ready ? 'ok' : 'failed',
    detail: ready ? `${toText(json['engine'])} engine, ready` : problems,
  })
  await checks.add(versionCheck(toText(json['version']), call.host.version))
  const skew = Math.abs(date - Date.now())
  if (skew > CLOCK_MS + 1000) {
    const detail = `the clock of the server differs from this one by ${Math.round(skew / 1000)} s; tokens may be refused`
    await checks.add({ name: 'clock', state: 'warning', detail })
  }
  return true
}

const PING = {
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
}

async function checkCallers(call: CommandCall, { url, token, tls }: Connection, checks: CheckList): Promise<void> {
  const local = isLoopbackUrl(url)
  const open = isObject((await ask(call, tls, `${url}/mcp`, PING)).json['result'])
  if (!open) await checks.add({ name: 'authentication', state: 'ok', detail: 'calls without a token are refused' })
  else if (local) {
    await checks.add({
      name: 'authentication',
      state: 'ok',
      detail: 'off: every program on this machine can call the server',
    })
  } else {
    const detail = 'off: every client that reaches this address can call the server; set AUTHENTICATION_ENABLE'
    await checks.add({ name: 'authentication', state: 'failed', detail })
  }
  if (token !== undefined && !open) {
    const headers = { ...PING.headers, Authorization: `Bearer ${token}` }
    const accepted = isObject((await ask(call, tls, `${url}/mcp`, { ...PING, headers })).json['result'])
    const detail = accepted ? 'accepted' : 'refused: it is expired, or not made for this server'
    await checks.add({ name: 'token', state: accepted ? 'ok' : 'failed', detail, exit: EXIT.REFUSED })
  }
  const encrypted = url.startsWith('https:')
  const detail = encrypted
    ? 'https'
    : local
      ? 'off: the traffic stays on this machine'
      : 'off: tokens and messages cross the network in clear text; use https'
  await checks.add({ name: 'encryption', state: encrypted || local ? 'ok' : 'failed', detail })
}

async function checkManagement(
  call: CommandCall,
  { api, apiToken: token, apiTls: tls }: Connection,
  checks: CheckList,
): Promise<void> {
  const name = 'management'
  if (api === undefined) {
    const detail = 'not checked: give --api, or add the management URL to the context'
    await checks.add({ name, state: 'warning', detail })
    return
  }
  const { signal } = call.io
  const client = new ManagementClient({ url: api, token, tls, signal })
  try {
    const [snapshot, config] = [await client.get('/api/snapshot'), await client.get('/api/config')]
    if (!isLoopbackUrl(api) && (await isOpen(new ManagementClient({ url: api, token: undefined, tls, signal })))) {
      const detail = 'open: every client that reaches this address acts as Admin; set API_AUTHENTICATION_ENABLE'
      await checks.add({ name, state: 'failed', detail })
    } else {
      await checks.add({ name, state: 'ok', detail: `${api} answers` })
    }
    for (const check of configurationChecks(config)) await checks.add(check)
    const dropped = numberOf(snapshot['audit_dropped'])
    if (dropped > 0)
      await checks.add({ name: 'audit log', state: 'warning', detail: `${dropped} entries were lost since the start` })
  } catch (error) {
    const failure = failureOf(error)
    if (failure === undefined) throw error
    await checks.add({ name, state: 'warning', detail: `not checked: ${failure.message}` })
  }
}

async function isOpen(client: ManagementClient): Promise<boolean> {
  try {
    await client.get('/api/snapshot')
    return true
  } catch (error) {
    if (error instanceof SignalboxError) return false
    throw error
  }
}

/** Compares the version of the server with that of this command. */
function versionCheck(server: string, own: string): Check {
  const name = 'current'
  const order = compareVersions(server, own)
  if (order === 0) return { name, state: 'ok', detail: `version ${server}, as this command` }
  return order < 0
    ? { name, state: 'warning', detail: `the server is ${server}, this command is ${own}; upgrade the server` }
    : { name, state: 'warning', detail: `the server is ${server}, this command is ${own}; upgrade the command` }
}

/** Returns a negative number if `a` is the older version, 0 if both are the same. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [numbersOf(a), numbersOf(b)]
  for (const [i, number] of left.entries()) {
    const difference = number - (right[i] ?? 0)
    if (difference !== 0) return difference
  }
  return a === b ? 0 : a.includes('-') ? -1 : 1
}

function numbersOf(version: string): readonly number[] {
  return version.split(/[.+-]/).slice(0, 3).map(Number)
}

const EVERYWHERE = new Set(['0.0.0.0', '::', '[::]'])

function isWide(host: unknown): boolean {
  return EVERYWHERE.has(toText(host))
}

/** Returns the problems of a configuration, by the keys of the configuration file. */
export function configurationChecks(config: JsonObject): readonly Check[] {
  const read = (path: string): unknown =>
    path.split('.').reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), config)
  const checks: Check[] = []
  const warn = (name: string, detail: string): void => void checks.push({ name, state: 'warning', detail })
  const fail = (name: string, detail: string): void => void checks.push({ name, state: 'failed', detail })
  if (isWide(read('http.host')) && read('authentication.enable') !== true) {
    fail(
      'authentication',
      'off on a server that listens on every address; set AUTHENTICATION_ENABLE, or HTTP_HOST to one address',
    )
  }
  if (isWide(read('api.host')) && read('api.authentication.enable') !== true) {
    fail('management', 'open on every address; set API_AUTHENTICATION_ENABLE, or API_HOST=127.0.0.1')
  }
  if (isWide(read('http.host')) && read('security.certFile') === '') {
    warn(
      'encryption',
      'the server itself has no certificate; a proxy in front of it must encrypt, or set SECURITY_CERT_FILE',
    )
  }
  if (read('authentication.enable') === true && read('authorization.enable') !== true) {
    warn('policy', 'off: every caller with a token may use every channel; set AUTHORIZATION_ENABLE and a policy')
  }
  if (read('connectors.a2a.agentTlsSkipVerify') === true) {
    warn(
      'agents',
      'certificates of agents are not verified; use CONNECTORSA2_A_AGENT_CA_FILE in place of CONNECTORSA2_A_AGENT_TLS_SKIP_VERIFY',
    )
  }
  if (read('queue.maxMessages') === 0 && read('queue.maxBytes') === 0) {
    warn(
      'queues',
      'without limit: a queue without a receiver fills the disk; set QUEUE_MAX_MESSAGES or QUEUE_MAX_BYTES',
    )
  }
  if (read('store.maxAgeSeconds') === 0 && read('store.maxBytes') === 0) {
    warn('stores', 'without limit: events stores keep everything; set STORE_MAX_AGE_SECONDS or STORE_MAX_BYTES')
  }
  return checks
}
