import { writeFile } from 'node:fs/promises'

import { serveHttp } from '@signalbox/testkit/loopback'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { EchoAgent, TRANSLATOR } from './agents.ts'
import type { Settings } from './server.ts'
import { Server } from './server.ts'
import { fill } from './traffic.ts'

/** The texts that clients, agents and operators wrote. */
export interface Texts {
  readonly agent: string
  readonly about: string
  readonly skill: string
  readonly tag: string
  readonly body: string
  readonly caller: string
}

const PLAIN: Texts = {
  agent: 'Planner',
  about: 'Plans deliveries, and tells when a driver is late.',
  skill: 'Plan and summarize',
  tag: 'shop',
  body: '{"order":7100,"shop":"north"}',
  caller: 'shop-*',
}

interface EstateOptions {
  /** @default those of a shop */
  readonly texts?: Texts
  /** Further settings of the server. */
  readonly settings?: Settings
}

/** A server that has something to show on every screen: channels, dead letters, agents, tasks, streams, webhooks, a policy, routes. */
export class Estate implements AsyncDisposable {
  readonly server: Server
  readonly #stack: AsyncDisposableStack

  private constructor(server: Server, stack: AsyncDisposableStack) {
    this.server = server
    this.#stack = stack
  }

  static async start({ texts = PLAIN, settings = {} }: EstateOptions = {}): Promise<Estate> {
    await using stack = new AsyncDisposableStack()
    const folder = stack.use(await TemporaryFolder.create('estate'))
    const rules = [
      { clients: texts.caller, actions: 'send', patterns: 'queues', channels: 'secret.*', effect: 'deny' },
      { clients: '*', actions: '*', patterns: '*', channels: '*', effect: 'allow' },
    ]
    const routes = [
      { key: String.raw`orders\..+`, routes: 'events_store:archive;queues:work' },
      { key: `type = '${texts.tag}'`, keyType: 'cesql', routes: 'queues:work' },
      { key: 'invoices', routes: 'events:billing' },
    ]
    await writeFile(folder.join('policy.yaml'), JSON.stringify({ rules }))
    await writeFile(folder.join('routes.json'), JSON.stringify(routes))
    const server = stack.use(
      await Server.start({
        ROUTING_FILE: folder.join('routes.json'),
        AUTHORIZATION_ENABLE: 'true',
        AUTHORIZATION_POLICY_FILE: folder.join('policy.yaml'),
        WEBHOOKS_ENABLE: 'true',
        WEBHOOKS_KEY_FILE: folder.join('webhooks.key'),
        WEBHOOKS_ALLOW: '127.0.0.1',
        ...settings,
      }),
    )
    await fill(server)
    await useAgents(server, stack.use(await EchoAgent.start()), texts, stack)
    for (const channel of ['ledger', 'archive']) await subscribeWebhook(server, channel, await openEndpoint(stack))
    await useMessages(server, texts)
    stack.adopt(waitForAnswer(server, texts), (ended) => ended.abort())
    return new Estate(server, stack.move())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

async function useAgents(
  server: Server,
  agent: EchoAgent,
  { agent: name, about, skill, body }: Texts,
  stack: AsyncDisposableStack,
): Promise<void> {
  const [translate, summarize] = TRANSLATOR.skills
  await agent.register(server, { ...TRANSLATOR, skills: [translate, { ...summarize, name: skill }] })
  await agent.register(server, {
    agent_id: 'planner',
    name,
    description: about,
    version: '1.0.3',
    provider: { organization: name, url: 'https://planner.example' },
    skills: [{ id: 'plan', name: skill, description: about, tags: [skill], examples: [skill] }],
  })
  for (const message of ['Translate this contract.', 'fail', body, 'How long does it take?']) {
    await server.tool('agent_send', { agent_id: 'translator', message })
    await server.tool('agent_send', { agent_id: 'planner', message })
  }
  const ended = new AbortController()
  stack.defer(() => ended.abort())
  void openStream(server, body, ended.signal)
  await startTask(server.http)
}

/** Opens a stream of an agent, and reads it until the signal ends it. */
async function openStream(server: Server, text: string, signal: AbortSignal): Promise<void> {
  const message = { kind: 'message', role: 'user', messageId: '1', parts: [{ kind: 'text', text }] }
  await fetch(`${server.http}/a2a/translator`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...server.headersOf('assistant') },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: { message } }),
    signal,
  })
    .then((response) => response.text())
    .catch(() => {})
}

/** Calls an agent that does not answer, as a client with tasks does: the call becomes a task. */
export async function startTask(
  http: string,
  {
    agent = 'translator',
    headers = {},
  }: { readonly agent?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): Promise<unknown> {
  const META = 'io.modelcontextprotocol'
  const response = await fetch(`${http}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'agent_send',
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'agent_send',
        arguments: { agent_id: agent, message: 'wait' },
        _meta: {
          [`${META}/protocolVersion`]: '2026-07-28',
          [`${META}/clientInfo`]: { name: 'estate', version: '1' },
          [`${META}/clientCapabilities`]: { extensions: { [`${META}/tasks`]: {} } },
        },
      },
    }),
  })
  return response.json()
}

/** Opens an endpoint that accepts every delivery; returns its address. */
export async function openEndpoint(stack: AsyncDisposableStack): Promise<string> {
  const endpoint = stack.use(
    await serveHttp((request, response) => {
      response.writeHead(request.method === 'OPTIONS' ? 200 : 204, { 'WebHook-Allowed-Origin': '*' }).end()
    }),
  )
  return `${endpoint.url}/orders`
}

export async function subscribeWebhook(server: Server, channel: string, sink: string): Promise<void> {
  const response = await fetch(`${server.http}/ce/subscriptions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...server.headersOf('accounting') },
    body: JSON.stringify({ sink, config: { channel, secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=' } }),
  })
  if (response.status !== 201) throw new Error(`subscribe: ${response.status} ${await response.text()}`)
}

async function useMessages(server: Server, { body, tag }: Texts): Promise<void> {
  const message = { body, metadata: body, tags: { [tag]: body } }
  await server.tool('queue_send', { channel: 'orders.north', ...message })
  await server.tool('events_store_publish', { channel: 'ledger', ...message })
  await server.tool('events_publish', { channel: 'prices.north', ...message })
  await server.tool('queue_send', {
    channel: 'payments',
    ...message,
    max_receive_count: 1,
    dead_letter_queue: 'payments.dead',
  })
  await server.act('purge_queue', { channel: 'work' })
  await server.act('create_channel', { channel: 'reports', type: 'queues' })
  await server.act('delete_channel', { channel: 'reports', type: 'queues' })
}

/** Sends a query that nobody answers, again and again until the controller ends it. */
function waitForAnswer(server: Server, { body }: Texts): AbortController {
  const ended = new AbortController()
  const question = { channel: 'prices.ask', body, timeout_seconds: 60 }
  const ask = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      const response = await fetch(`${server.http}/mcp`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...server.headersOf('checkout'),
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'query_send', arguments: question },
        }),
        signal: ended.signal,
      })
      await response.arrayBuffer()
    }
  }
  ask().catch(() => {})
  return ended
}
