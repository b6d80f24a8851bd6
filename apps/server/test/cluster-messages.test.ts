import { randomUUID } from 'node:crypto'

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { callTool, rpc } from './support/mcp.ts'
import { PATIENT, serveNodes, startFront } from './support/nodes.ts'
import { SseClient } from '@signalbox/testkit/sse-client'

interface Envelope {
  readonly is_error: boolean
  readonly message: string
  readonly data: { readonly messages?: readonly { readonly receipt: string }[] }
}

async function post(base: string, route: string, event?: object): Promise<Envelope & { readonly status: number }> {
  const response = await fetch(`${base}/ce/${route}`, {
    method: 'POST',
    ...(event && {
      headers: { 'content-type': 'application/cloudevents+json' },
      body: JSON.stringify({ specversion: '1.0', id: '1', source: '/test', type: 'com.example.test', ...event }),
    }),
  })
  return { status: response.status, ...((await response.json()) as Envelope) }
}

describe.skipIf(NATS_SERVER === undefined)('messages across nodes', () => {
  test('CL-11, M2 - the MCP client of the SDK is at another node with every request', async () => {
    const front = await startFront(await serveNodes(3))
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${front}/mcp`)))
    onTestFinished(() => client.close())
    expect((await client.listTools()).tools).toHaveLength(TOOL_NAMES.length)
    const call = (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args })
    for (let i = 0; i < 7; i++) {
      expect(await call('queue_send', { channel: 'jobs', body: `job ${i}` })).toMatchObject({ isError: false })
      expect(await call('events_store_publish', { channel: 'log', body: `${i}` })).toMatchObject({ isError: false })
    }
    const bodies: string[] = []
    while (bodies.length < 7) {
      const { structuredContent } = await call('queue_receive', {
        channel: 'jobs',
        max_messages: 2,
        wait_timeout_seconds: 20,
      })
      const { messages } = structuredContent as { messages: { body: string }[] }
      expect(messages.length).toBeGreaterThan(0)
      bodies.push(...messages.map(({ body }) => body))
    }
    expect(bodies.toSorted()).toEqual(Array.from({ length: 7 }, (_, i) => `job ${i}`))
    for (let i = 0; i < 3; i++) {
      const read = await call('events_store_read', { channel: 'log', from_sequence: 3, max_messages: 100 })
      const { events } = read.structuredContent as { events: { body: string }[] }
      expect(events.map(({ body }) => body)).toEqual(['2', '3', '4', '5', '6'])
    }
  })

  test('CL-11 - a queue_receive that waits at one node gets messages sent at another, also for a queue that does not exist yet', async () => {
    const [one, two] = await serveNodes(2)
    const waiting = callTool(one!.http.url, 'queue_receive', {
      channel: 'new',
      max_messages: 1,
      wait_timeout_seconds: 20,
    })
    await callTool(two!.http.url, 'queue_send', { channel: 'new', body: 'across' })
    expect((await waiting).structured).toMatchObject({ messages: [{ body: 'across' }] })
    const { structured } = await callTool(two!.http.url, 'queue_receive', {
      channel: 'new',
      max_messages: 1,
      wait_timeout_seconds: 1,
    })
    expect(structured).toMatchObject({ messages: [] })
  })

  test('CL-11, M11 - a command of an MCP client waits for a subscriber at another node', async () => {
    const [one, two] = await serveNodes(2)
    const command = callTool(one!.http.url, 'command_send', { channel: 'lights', body: 'on', timeout_seconds: 20 })
    const stream = await SseClient.open(`${two!.http.url}/ce/subscribe/commands?channel=lights`)
    const { brokerrequestid: id } = (await stream.next()).json
    expect(await post(two!.http.url, `send/response?request_id=${id}`, {})).toMatchObject({ status: 202 })
    expect(await command).toMatchObject({ isError: false })
  })

  test('CL-11, CL-13, CE-11 - a conversation over /ce goes to another node with every request', async () => {
    const front = await startFront(await serveNodes(3))
    const stream = await SseClient.open(`${front}/ce/subscribe/queries?channel=prices`)
    for (let i = 0; i < 6; i++) {
      const query = post(front, 'send/query?channel=prices', { data: { i } })
      const { brokerrequestid: id, data } = (await stream.next()).json
      expect(data).toEqual({ i })
      const answer = { id: `a${i}`, mine: 'kept', data: { price: i } }
      expect(await post(front, `send/response?request_id=${id}`, answer)).toMatchObject({ status: 202 })
      expect(await query).toMatchObject({ status: 200, is_error: false, data: answer })
      expect(await post(front, `send/response?request_id=${id}`, {})).toMatchObject({ status: 404 })
    }
    const refused = post(front, 'send/query?channel=prices', {})
    const { brokerrequestid: id } = (await stream.next()).json
    await post(front, `send/response?request_id=${id}&is_error=true`, { data: 'sold out' })
    expect(await refused).toMatchObject({ is_error: true, message: 'rejected by the subscriber: sold out' })
  })

  test('CL-11, CE-25 - a query with a key is sent once, and its repeats at other nodes get the same answer', async () => {
    const [one, two, three] = await serveNodes(3)
    const stream = await SseClient.open(`${three!.http.url}/ce/subscribe/queries?channel=prices`)
    const ask = async (node: typeof one) => {
      const response = await fetch(`${node!.http.url}/ce/send/query?channel=prices`, {
        method: 'POST',
        headers: { 'content-type': 'application/cloudevents+json', 'idempotency-key': 'k' },
        body: JSON.stringify({ specversion: '1.0', id: randomUUID(), source: '/test', type: 'test' }),
      })
      const replayed = response.headers.get('idempotency-replayed') === 'true'
      return { status: response.status, text: await response.text(), replayed }
    }
    const first = ask(one)
    const { brokerrequestid: id } = (await stream.next()).json
    const during = ask(two)
    expect(await post(one!.http.url, `send/response?request_id=${id}`, { data: 'gold' })).toMatchObject({ status: 202 })
    const { status, text } = await first
    expect(status).toBe(200)
    for (const repeat of [during, ask(three)]) expect(await repeat).toEqual({ status, text, replayed: true })
    expect(stream.waiting).toEqual([])
  })

  test('CL-13, CE-11 - an answer to a request that no node knows is refused at once', async () => {
    const [one, two] = await serveNodes(3)
    const stream = await SseClient.open(`${one!.http.url}/ce/subscribe/queries?channel=prices`)
    const query = post(one!.http.url, 'send/query?channel=prices', {})
    const { brokerrequestid: id = '' } = (await stream.next()).json
    const otherRequest = `${id.slice(0, 8)}${randomUUID().slice(8)}`
    const started = performance.now()
    for (const unknown of [randomUUID(), otherRequest]) {
      expect(await post(two!.http.url, `send/response?request_id=${unknown}`, {})).toMatchObject({
        status: 404,
        data: { code: 'REQUEST_UNKNOWN' },
      })
    }
    // Waiting for a node that might come would take five seconds each.
    expect(performance.now() - started).toBeLessThan(4_000)
    expect(await post(two!.http.url, `send/response?request_id=${id}`, {})).toMatchObject({ status: 202 })
    expect(await query).toMatchObject({ is_error: false })
  })

  test('CL-3, CE-12 - messages that one node leased are acknowledged and rejected at another, also when the first has died', async () => {
    const [one, two, three] = await serveNodes(3)
    for (let i = 0; i < 3; i++) await post(two!.http.url, 'queue/send?channel=q', { id: `m${i}` })
    const receipts: string[] = []
    while (receipts.length < 3) {
      const lease = 'max_messages=3&visibility_seconds=60&wait_timeout=20'
      const { data } = await post(one!.http.url, `queue/receive?channel=q&${lease}`)
      receipts.push(...(data.messages ?? []).map(({ receipt }) => encodeURIComponent(receipt)))
    }
    const [a, b, c] = receipts
    expect(await post(two!.http.url, `queue/ack?receipt=${a}`)).toMatchObject({ status: 200, data: { settled: 1 } })
    expect(await post(three!.http.url, `queue/ack?receipt=${a}`)).toMatchObject({ status: 200, data: { settled: 1 } })
    expect(await post(three!.http.url, `queue/nack?receipt=${a}`)).toMatchObject({ is_error: true })
    await one!.close()
    expect(await post(three!.http.url, `queue/ack?receipt=${b}`)).toMatchObject({ data: { settled: 1 } })
    expect(await post(two!.http.url, `queue/nack?receipt=${c}`)).toMatchObject({ data: { settled: 1 } })
    const again = await post(three!.http.url, 'queue/receive?channel=q&visibility_seconds=60&wait_timeout=20')
    expect(again.data.messages).toMatchObject([{ event: { id: 'm2' }, receive_count: 2 }])
  })

  test('CL-11 - events fan out to the subscribers of every node, and a group shares them', async () => {
    const nodes = await serveNodes(3)
    const open = (query: string) =>
      Promise.all(nodes.map(({ http }) => SseClient.open(`${http.url}/ce/subscribe/events?channel=${query}`)))
    const [all, members] = [await open('news.*'), await open('news.>&group=g')]
    for (let i = 0; i < 9; i++) {
      expect((await post(nodes[i % 3]!.http.url, 'send/event?channel=news.today', { id: `n${i}` })).status).toBe(202)
    }
    const ids = Array.from({ length: 9 }, (_, i) => `n${i}`)
    for (const stream of all) {
      // In the order of each publishing node; between nodes there is none.
      await vi.waitFor(() => expect(stream.seen.map(({ json }) => String(json.id)).toSorted()).toEqual(ids), PATIENT)
    }
    await vi.waitFor(
      () => expect(members.flatMap(({ seen }) => seen.map(({ json }) => String(json.id))).toSorted()).toEqual(ids),
      PATIENT,
    )
  })

  test('CL-11 - an events store continues at another node after Last-Event-ID', async () => {
    const [one, two] = await serveNodes(2)
    for (let i = 1; i <= 4; i++) await post(one!.http.url, 'send/event-store?channel=log', { id: `e${i}` })
    const first = await SseClient.open(`${one!.http.url}/ce/subscribe/events-store?channel=log&events_store_type=2`)
    expect([(await first.next()).id, (await first.next()).id]).toEqual(['1', '2'])
    first.close()
    const second = await SseClient.open(`${two!.http.url}/ce/subscribe/events-store?channel=log`, {
      'last-event-id': '2',
    })
    await post(one!.http.url, 'send/event-store?channel=log', { id: 'e5' })
    for (const id of ['3', '4', '5']) expect(await second.next()).toMatchObject({ id, json: { id: `e${id}` } })
  })

  test('M2 - a session id of one node is echoed by another', async () => {
    const [one, two] = await serveNodes(2)
    const { result } = (await rpc(one!.http.url, 'initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    })) as { result: { _meta: { sessionId: string } } }
    const { sessionId } = result._meta
    const response = await fetch(`${two!.http.url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'mcp-session-id': sessionId },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    })
    expect([response.status, response.headers.get('mcp-session-id')]).toEqual([200, sessionId])
  })
})
