import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Broker, BrokerHandle, Policy } from '@signalbox/broker-core'
import { Authorization, createBroker, encodeText } from '@signalbox/broker-core'
import type { EmbeddedEngine } from '@signalbox/engine-embedded'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import type { Authenticator, Identity } from '@signalbox/http-kit'
import { AuthenticationError, isRole } from '@signalbox/http-kit'
import Fastify from 'fastify'
import { onTestFinished } from 'vitest'

import type { AgentsPort, ManagementOptions, ManagementServices } from '../src/index.ts'
import type { ManagementApi } from '../src/fastify.ts'
import { managementApi } from '../src/fastify.ts'

/** An answer of the management API. */
export interface Answer<Data = AnswerData> {
  readonly status: number
  readonly error: boolean
  readonly error_string: string
  readonly data: Data
}

/** An item of a list, with the members that tests read by name. */
export interface Item extends Readonly<Record<string, unknown>> {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly channel: string
  readonly sequence: number
  readonly body: string
  readonly detail: string
}

/** What most tests read: a page of a list, an error, or the message that an action sent. */
export interface AnswerData {
  readonly items: readonly Item[]
  readonly next_cursor: string | null
  readonly total: number
  readonly complete: boolean
  readonly code: string
  readonly problems: readonly { readonly parameter: string }[]
  readonly id: string
}

export interface ServerSettings extends Partial<ManagementOptions> {
  readonly agents?: AgentsPort
  /** Services in addition to the broker and the agents. @default none */
  readonly services?: Partial<ManagementServices>
  /** False leaves the server in its start; call `start` later. @default true */
  readonly started?: boolean
  readonly now?: () => number
  /** The policy of the shared listener's callers. @default none */
  readonly policy?: Policy
  /** @default that of the engine */
  readonly maxChannels?: number
}

export interface ManagementServer {
  readonly url: string
  readonly api: ManagementApi
  readonly engine: EmbeddedEngine
  /** The broker of the shared listener. */
  readonly broker: Broker
  readonly authorization: Authorization | undefined
  readonly system: BrokerHandle
  /** `GET /api/config` and so on: every route that the plugin has. */
  readonly routes: readonly string[]
  readonly start: () => void
  readonly get: <Data = AnswerData>(path: string, headers?: Record<string, string>) => Promise<Answer<Data>>
  readonly act: <Data = AnswerData>(
    action: string,
    args: unknown,
    headers?: Record<string, string>,
  ) => Promise<Answer<Data>>
  readonly close: () => Promise<void>
}

const NODE = { ready: true, healthy: true, node: 'n1', version: '1.2.3', engine: 'embedded', uptime_seconds: 1 }

/** A management listener over a real engine, on a free port. */
export async function manage({
  agents,
  services = {},
  started = true,
  now,
  policy,
  maxChannels,
  ...options
}: ServerSettings = {}): Promise<ManagementServer> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-management-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const engine = await openEmbeddedEngine({
    path: folder,
    ...(now ? { now } : {}),
    ...(maxChannels === undefined ? {} : { maxChannels }),
  })
  const api = managementApi({
    node: async () => NODE,
    metrics: { contentType: 'text/plain; version=0.0.4', text: async () => 'broker_up 1\n' },
    document: { version: '1.2.3' },
    settleGraceMs: 20,
    hooks: {
      failed: (error) => {
        throw error
      },
    },
    ...options,
  })
  const authorization = policy && new Authorization(policy)
  const { broker, system, operators } = createBroker(engine, { observers: api.observers, authorization })
  const app = Fastify({ forceCloseConnections: 'idle', bodyLimit: options.maxBodyBytes ?? 1024 * 1024 })
  const routes: string[] = []
  app.addHook('onRoute', ({ method, path }) => {
    if (method !== 'HEAD') routes.push(`${String(method)} ${path}`)
  })
  await app.register(api.plugin)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const start = (): void => api.serve({ broker: operators, system, agents, ...services, authorization })
  if (started) start()
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => {
    closed ??= (async () => {
      await api.finish()
      await engine.close()
      await app.close()
    })()
    return closed
  }
  onTestFinished(async () => {
    // A connection of this test that still waits for something must not keep the server.
    const cut = setTimeout(() => app.server.closeAllConnections(), 10_000)
    await close()
    clearTimeout(cut)
  })
  return {
    url,
    api,
    engine,
    broker,
    authorization,
    system,
    routes,
    start,
    close,
    get: (path, headers = {}) => answer(fetch(url + path, { headers })),
    act: (action, args, headers = {}) =>
      answer(
        fetch(`${url}/api/actions/${action}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(args),
        }),
      ),
  }
}

async function answer<Data>(response: Promise<Response>): Promise<Answer<Data>> {
  const { status, text } = await response.then(async (got) => ({ status: got.status, text: await got.text() }))
  return { status, ...(JSON.parse(text) as Omit<Answer<Data>, 'status'>) }
}

/** A token is `client` or `client:Role`; all of them end so many milliseconds after their use. */
export function tokens(lastingMs?: number): Authenticator {
  return {
    authenticate({ headers }): Identity {
      const [, clientId, role = ''] = /^Bearer ([\w-]+)(?::(\w+))?$/.exec(headers.authorization ?? '') ?? []
      if (clientId === undefined) throw new AuthenticationError('no token')
      return {
        clientId,
        roles: isRole(role) ? [role] : [],
        expiresAt: lastingMs === undefined ? undefined : Date.now() + lastingMs,
      }
    },
  }
}

export function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` }
}

export const text = encodeText
