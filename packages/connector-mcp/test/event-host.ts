import type { BrokerHandle, Engine, Policy } from '@signalbox/broker-core'
import { Authorization, createBroker, encodeText, parsePolicy } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import type { Authenticator } from '@signalbox/http-kit'
import { AuthenticationError } from '@signalbox/http-kit'
import { serveHttp } from '@signalbox/testkit/loopback'
import { testFolder } from '@signalbox/testkit/test-folder'
import { EndpointPolicy, openWebhooks } from '@signalbox/webhooks'
import { onTestFinished } from 'vitest'

import type { EventsOptions, EventTypeOptions } from '../src/events.ts'
import { eventWebhookFormat, mcpEvents } from '../src/events.ts'
import type { McpConnectorOptions } from '../src/index.ts'
import { mcpConnector } from '../src/index.ts'
import type { RpcAnswer } from './mcp-host.ts'
import { statelessRequest } from './stateless-client.ts'

/** The engines of the tests. NATS is left out where its server is not installed. */
export const ENGINES: readonly ('embedded' | 'nats')[] = NATS_SERVER === undefined ? ['embedded'] : ['embedded', 'nats']

/** Opens the same store each time it is called. */
export type OpenEngine = () => Promise<Engine>

export async function storeOf(kind: 'embedded' | 'nats', settings: object = {}): Promise<OpenEngine> {
  const folder = testFolder()
  if (kind === 'embedded') return () => openEmbeddedEngine({ path: folder, ...settings })
  const server = await NatsServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  return () => openNatsEngine({ servers: [server.url] })
}

/** An authenticator whose tokens are ClientIDs. */
const named: Authenticator = {
  authenticate({ headers }) {
    const [, clientId] = /^Bearer (\w+)$/.exec(headers.authorization ?? '') ?? []
    if (clientId === undefined) throw new AuthenticationError('no')
    return { clientId }
  },
}

export interface EventHostOptions {
  /** @default an embedded store of its own */
  readonly open?: OpenEngine
  /** The rules of the policy, which allow everything but for their members. @default no policy */
  readonly policy?: readonly object[]
  /** Callers have names, and webhooks on loopback are possible. @default false */
  readonly webhooks?: boolean
  readonly types?: readonly EventTypeOptions[]
  readonly events?: Partial<EventsOptions>
  readonly connector?: McpConnectorOptions
}

/** A node with the methods of events. */
export interface EventHost {
  readonly url: string
  readonly system: BrokerHandle
  readonly user: BrokerHandle
  readonly failures: unknown[]
  /** Replaces the policy. */
  setPolicy(...rules: readonly object[]): void
  request(method: string, params: object, more?: RequestOptions): Promise<Response>
  ask(method: string, params: object, more?: RequestOptions): Promise<RpcAnswer & { readonly status: number }>
  stream(params: object, more?: RequestOptions): Promise<EventReader>
  append(channel: string, ...bodies: readonly string[]): Promise<void>
  close(): Promise<void>
}

interface RequestOptions {
  /** @default 'alice' */
  readonly client?: string
  readonly meta?: object
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

export async function startEventHost(options: EventHostOptions = {}): Promise<EventHost> {
  const { policy, types = [], webhooks: pushes = false } = options
  const engine = await (options.open ?? (await storeOf('embedded')))()
  const authorization = policy === undefined ? undefined : new Authorization(policyOf(policy))
  const { broker, system } = createBroker(engine, authorization === undefined ? {} : { authorization })
  const failures: unknown[] = []
  const failed = (error: unknown): void => void failures.push(error)
  const webhooks = pushes
    ? await openWebhooks(system, {
        key: Buffer.alloc(32, 7),
        formats: [eventWebhookFormat(types)],
        endpointPolicy: new EndpointPolicy({ allow: ['127.0.0.1'] }),
        permits: (owner, type, channel) => broker.as(owner).permits('subscribe', type, channel),
        hooks: { failed },
      })
    : undefined
  const connector = mcpConnector(broker, {
    ...(pushes || policy !== undefined ? { authenticator: named } : {}),
    ...options.connector,
    events: mcpEvents({
      system,
      types,
      ...(webhooks === undefined
        ? {}
        : {
            webhooks: {
              put: (id, input) => webhooks.put(id, { ...input, format: 'mcp.events' }),
              delete: async (id, owner) => void (await webhooks.delete(id, owner)),
            },
          }),
      ...options.events,
    }),
    hooks: { failed },
  })
  const server = await serveHttp(connector.handler)
  let closed: Promise<void> | undefined
  const close = (): Promise<void> =>
    (closed ??= (async () => {
      await connector.close(0)
      await webhooks?.close(500)
      await server[Symbol.asyncDispose]()
      await engine.close()
    })())
  onTestFinished(close)
  const url = `${server.url}/mcp`
  const user = broker.as({ clientId: 'publisher' })
  const request: EventHost['request'] = (method, params, { client = 'alice', meta, headers = {}, signal } = {}) => {
    const made = statelessRequest(
      method,
      { ...params },
      {
        headers: { Authorization: `Bearer ${client}`, ...headers },
        ...(meta === undefined ? {} : { meta }),
      },
    )
    // Requests about events do not repeat their name in a header.
    const { 'Mcp-Name': _name, ...sent } = made.headers
    return fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...sent },
      body: JSON.stringify(made.body),
      ...(signal === undefined ? {} : { signal }),
    })
  }
  return {
    url,
    system,
    user,
    failures,
    setPolicy: (...rules) => authorization?.replace(policyOf(rules)),
    request,
    async ask(...args) {
      const response = await request(...args)
      return { ...((await response.json()) as RpcAnswer), status: response.status }
    },
    async stream(params, more) {
      const response = await request('events/stream', params, more)
      if (!response.ok || response.body === null) throw new Error(await response.text())
      return new EventReader(response.body)
    },
    async append(channel, ...bodies) {
      for (const body of bodies) await system.eventsStore.publish(channel, { body: encodeText(body) })
    },
    close,
  }
}

function policyOf(rules: readonly object[]): Policy {
  const anything = { clients: '*', actions: '*', patterns: '*', channels: '*', effect: 'allow' }
  return parsePolicy({ rules: rules.map((rule) => ({ ...anything, ...rule })) })
}

/** A message on a stream of events. */
export interface EventMessage {
  readonly method?: string
  readonly id?: unknown
  readonly params?: { readonly [member: string]: unknown; readonly data?: { readonly body?: string } }
  readonly result?: { readonly [member: string]: unknown }
  readonly error?: object
}

/** The messages of a stream, one after another. */
export class EventReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  #text = ''

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader()
  }

  /** Resolves with the next message; `undefined` when the stream has ended. */
  async next(): Promise<EventMessage | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end >= 0) {
        const frame = this.#text.slice(0, end)
        this.#text = this.#text.slice(end + 2)
        const data = /^data: (.*)$/m.exec(frame)?.[1]
        if (data !== undefined) return JSON.parse(data) as EventMessage
        continue
      }
      const { done, value } = await this.#reader.read()
      if (done) return undefined
      this.#text += this.#decoder.decode(value, { stream: true })
    }
  }

  /** Resolves with the next message that is no heartbeat. */
  async nextOther(): Promise<EventMessage | undefined> {
    for (;;) {
      const message = await this.next()
      if (message?.method !== 'notifications/events/heartbeat') return message
    }
  }
}
