import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { ANONYMOUS, encodeText } from '@signalbox/broker-core'
import { testFile, testFolder } from '@signalbox/testkit/test-folder'
import { openReceiver } from '@signalbox/testkit/webhook-receiver'
import { afterAll, describe, expect, test } from 'vitest'

import { register, startAgent } from './support/agent.ts'
import { serve } from './support/server.ts'
import { issuer, keySet, trusting } from './support/tokens.ts'
import { deliveryText, WireExchange } from './support/wire.ts'

/** `UPDATE_WIRE=1` writes the page; otherwise it is compared. */
const UPDATE = process.env['UPDATE_WIRE'] === '1'
const PAGE = fileURLToPath(new URL('../../../docs/reference/mcp-wire.md', import.meta.url))
const page = readFileSync(PAGE, 'utf8')

const VERSION = '2026-07-28'
const SESSION = { 'MCP-Protocol-Version': '2025-11-25', 'MCP-Session-Id': '6f9619ff-8b86-4011-b42d-00c04fc964ff' }
const FORMS = { elicitation: { form: {} } }
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

/** The text of all blocks so far, by name. */
const all = new Map<string, string>()

/** The blocks of one test by name. */
class Blocks {
  readonly shown = new Map<string, string>()

  async add(name: string, exchange: WireExchange): Promise<void> {
    this.addText(name, await exchange.text())
  }

  addText(name: string, text: string): void {
    this.shown.set(name, text)
    all.set(name, text)
  }

  /** Returns the same blocks as the page has them. */
  onPage(): ReadonlyMap<string, string | undefined> {
    return UPDATE ? this.shown : new Map([...this.shown.keys()].map((name) => [name, blockOf(name)]))
  }
}

function blockOf(name: string): string | undefined {
  return new RegExp(`<!-- wire: ${name} -->\n\n\`\`\`http\n([^]*?)\n\`\`\`\n`).exec(page)?.[1]
}

interface Stateless {
  readonly id?: number
  readonly params?: { readonly name?: string; readonly taskId?: string; readonly [member: string]: unknown }
  readonly capabilities?: object
  readonly progressToken?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A request of 2026-07-28. */
function stateless(
  base: string,
  method: string,
  { id = 1, params = {}, capabilities = {}, progressToken, headers }: Stateless,
) {
  const name = method.startsWith('events/') ? undefined : (params.name ?? params.taskId)
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'example', version: '0.1.0' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    ...(progressToken === undefined ? {} : { progressToken }),
  }
  return new WireExchange(base, {
    headers: {
      'MCP-Protocol-Version': VERSION,
      'Mcp-Method': method,
      ...(name === undefined ? {} : { 'Mcp-Name': name }),
      ...headers,
    },
    body: { jsonrpc: '2.0', id, method, params: { ...params, _meta } },
  })
}

/** A request of 2025-11-25 after the handshake. */
function legacy(base: string, body: object, headers: Readonly<Record<string, string>> = SESSION): WireExchange {
  return new WireExchange(base, { headers, body: { jsonrpc: '2.0', ...body } })
}

function isWaiting(received: string): boolean {
  return received.includes('notifications/progress')
}

const SEND = { name: 'queue_send', arguments: { channel: 'orders', body: 'one' } }
const RECEIVE = { name: 'queue_receive', arguments: { channel: 'empty', max_messages: 1, wait_timeout_seconds: 60 } }
const ORDERS = { name: 'events_store.appended', arguments: { channel: 'orders' } }
const ASK = { name: 'query_send', arguments: { channel: 'ask', body: 'how many?' } }

/** A server with a query that is answered when the test says so. */
async function start() {
  const { broker, http } = await serve({ connectors: { mcp: { tasks: { afterMs: 50 } } } })
  const answer = Promise.withResolvers<void>()
  await broker.as(ANONYMOUS).queries.subscribe('ask', {}, async () => {
    await answer.promise
    return { body: encodeText('four') }
  })
  return { url: http.url, answer: answer.resolve }
}

describe('mcp-wire.md', () => {
  test('M16 - requests of 2026-07-28', async () => {
    const blocks = new Blocks()
    const { url, answer } = await start()
    await blocks.add('call-2026', stateless(url, 'tools/call', { params: SEND }))
    await blocks.add('connect-2026', stateless(url, 'server/discover', {}))
    await blocks.add('list-2026', stateless(url, 'tools/list', {}))
    const cancelled = stateless(url, 'tools/call', { params: RECEIVE, progressToken: 'p1' })
    await cancelled.until(isWaiting)
    cancelled.abandon()
    await blocks.add('cancel-2026', cancelled)
    const progress = stateless(url, 'tools/call', { params: ASK, progressToken: 'p1' })
    await progress.until(isWaiting)
    answer()
    await blocks.add('progress-2026', progress)
    expect(blocks.onPage()).toEqual(blocks.shown)
  })

  test('M19 - a task', async () => {
    const blocks = new Blocks()
    const { url, answer } = await start()
    const created = stateless(url, 'tools/call', { params: ASK, capabilities: TASKS })
    await blocks.add('task-2026', created)
    const { result } = await created.json<{ result: { taskId: string } }>()
    const get = () => stateless(url, 'tasks/get', { id: 2, params: { taskId: result.taskId }, capabilities: TASKS })
    answer()
    await expect.poll(async () => (await get().json<{ result: { status: string } }>()).result.status).toBe('completed')
    await blocks.add('task-get-2026', get())
    expect(blocks.onPage()).toEqual(blocks.shown)
  })

  test('M20 - input for an agent', async () => {
    const blocks = new Blocks()
    const { url } = await start()
    const message = { role: 'agent', kind: 'message', messageId: 'm', parts: [{ kind: 'text', text: 'for how many?' }] }
    const agent = await startAgent(({ params }, response) => {
      const { taskId } = params['message'] as { taskId?: string }
      const status = taskId === undefined ? { state: 'input-required', message } : { state: 'completed' }
      const result = { kind: 'task', id: 't1', contextId: 'c1', status }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ jsonrpc: '2.0', id: null, result }))
    })
    await register(url, { agent_id: 'clerk', name: 'Clerk', url: agent.url })
    const params = { name: 'agent_send', arguments: { agent_id: 'clerk', message: 'book a table' } }
    const asked = stateless(url, 'tools/call', { params, capabilities: FORMS })
    await blocks.add('input-2026', asked)
    const { result } = await asked.json<{ result: { requestState: string } }>()
    const inputResponses = { question: { action: 'accept', content: { answer: 'four' } } }
    const retry = { ...params, inputResponses, requestState: result.requestState }
    await blocks.add('input-retry-2026', stateless(url, 'tools/call', { id: 2, params: retry, capabilities: FORMS }))
    expect(blocks.onPage()).toEqual(blocks.shown)
  })

  test('M29 - polls and a stream of events', async () => {
    const blocks = new Blocks()
    const { broker, http } = await serve({ connectors: { mcp: { events: true } } })
    const { url } = http
    const append = (body: string) => broker.as(ANONYMOUS).eventsStore.publish('orders', { body: encodeText(body) })
    await blocks.add('events-list-2026', stateless(url, 'events/list', {}))
    const first = stateless(url, 'events/poll', { params: ORDERS })
    await blocks.add('events-start-2026', first)
    const { result } = await first.json<{ result: { cursor: string } }>()
    await append('one')
    const { cursor } = result
    await blocks.add('events-poll-2026', stateless(url, 'events/poll', { id: 2, params: { ...ORDERS, cursor } }))
    const stream = stateless(url, 'events/stream', { id: 3, params: { ...ORDERS, cursor } })
    await stream.until((received) => received.includes('notifications/events/event'))
    stream.abandon()
    await blocks.add('events-stream-2026', stream)
    const refused = { name: 'events.published', arguments: { channel: 'news' } }
    await blocks.add('events-refused-2026', stateless(url, 'events/poll', { id: 4, params: refused }))
    expect(blocks.onPage()).toEqual(blocks.shown)
  })

  test('M30 - the life of a subscription', async () => {
    const blocks = new Blocks()
    const one = issuer()
    const { broker, http } = await serve({
      ...trusting(one),
      connectors: { mcp: { events: true } },
      webhooks: { enable: true, keyFile: join(testFolder(), 'webhooks.key'), allow: ['127.0.0.1'] },
    })
    const receiver = await openReceiver()
    receiver.reply = (response, { body }) => {
      const { challenge } = JSON.parse(body) as { challenge?: string }
      if (challenge === undefined) response.writeHead(204).end()
      else response.writeHead(200).end(JSON.stringify({ challenge }))
    }
    const headers = { Authorization: await one.bearer('alice') }
    const delivery = { mode: 'webhook', url: receiver.url, secret: `whsec_${Buffer.alloc(32, 1).toString('base64')}` }
    const subscribe = (id: number) =>
      stateless(http.url, 'events/subscribe', { id, params: { ...ORDERS, delivery, ttlMs: 3_600_000 }, headers })
    await blocks.add('events-subscribe-2026', subscribe(1))
    await broker.as({ clientId: 'shop' }).eventsStore.publish('orders', { body: encodeText('one') })
    await expect.poll(() => receiver.received.length).toBe(2)
    const [verification, delivered] = receiver.received.map(deliveryText)
    blocks.addText('events-verification', verification ?? '')
    blocks.addText('events-delivery', delivered ?? '')
    await blocks.add('events-renew-2026', subscribe(2))
    const ended = { ...ORDERS, delivery: { url: receiver.url } }
    await blocks.add(
      'events-unsubscribe-2026',
      stateless(http.url, 'events/unsubscribe', { id: 3, params: ended, headers }),
    )
    expect(blocks.onPage()).toEqual(blocks.shown)
  })

  test('M1 - requests of 2025-11-25', async () => {
    const blocks = new Blocks()
    const { url, answer } = await start()
    const clientInfo = { name: 'example', version: '0.1.0' }
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    await blocks.add('connect-2025', legacy(url, { id: 1, method: 'initialize', params: initialize }, {}))
    await blocks.add('initialized-2025', legacy(url, { method: 'notifications/initialized' }))
    await blocks.add('list-2025', legacy(url, { id: 2, method: 'tools/list' }))
    await blocks.add('call-2025', legacy(url, { id: 3, method: 'tools/call', params: SEND }))
    const _meta = { progressToken: 'p1' }
    const cancelled = legacy(url, { id: 4, method: 'tools/call', params: { ...RECEIVE, _meta } })
    await cancelled.until(isWaiting)
    await blocks.add('cancel-2025', legacy(url, { method: 'notifications/cancelled', params: { requestId: 4 } }))
    await blocks.add('cancelled-2025', cancelled)
    const progress = legacy(url, { id: 5, method: 'tools/call', params: { ...ASK, _meta } })
    await progress.until(isWaiting)
    answer()
    await blocks.add('progress-2025', progress)
    expect(blocks.onPage()).toEqual(blocks.shown)
  })

  test('S10 - the challenge of OAuth', async () => {
    const blocks = new Blocks()
    const one = issuer()
    const publicUrl = 'https://broker.example.com'
    const iss = 'https://id.example.com'
    const aud = `${publicUrl}/mcp`
    const { http } = await serve({
      publicUrl,
      authentication: {
        enable: true,
        jwksFile: testFile(keySet(one)),
        issuer: iss,
        audience: [aud],
        oauth: { enable: true },
      },
    })
    await blocks.add('challenge-2026', stateless(http.url, 'tools/list', {}))
    await blocks.add('challenge-2025', legacy(http.url, { id: 2, method: 'tools/list' }))
    await blocks.add(
      'metadata',
      new WireExchange(http.url, { method: 'GET', path: '/.well-known/oauth-protected-resource/mcp' }),
    )
    const Authorization = await one.bearer('alice', { iss, aud, scope: 'signalbox:read' })
    await blocks.add('scope', stateless(http.url, 'tools/call', { params: SEND, headers: { Authorization } }))
    expect(blocks.onPage()).toEqual(blocks.shown)
  })

  test('docs - the page has no other blocks', () => {
    const named = [...page.matchAll(/<!-- wire: ([\w-]+) -->/g)].map(([, name = '']) => name)
    expect(named.toSorted()).toEqual([...all.keys()].toSorted())
  })

  afterAll(() => {
    if (!UPDATE) return
    const blocks = /<!-- wire: ([\w-]+) -->\n(?:\n```http\n[^]*?\n```\n)?/g
    const written = page.replace(blocks, (_block, name: string) => {
      return `<!-- wire: ${name} -->\n\n\`\`\`http\n${all.get(name) ?? ''}\n\`\`\`\n`
    })
    writeFileSync(PAGE, written)
  })
})
