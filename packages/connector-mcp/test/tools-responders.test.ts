import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'

import { ENGINES, storeOf } from './event-host.ts'
import type { TaskHost, TaskNode } from './task-host.ts'
import { startTaskHost } from './task-host.ts'

let host: TaskHost
let model: Client
/** The same model at another node. */
let elsewhere: Client

async function connect({ url }: TaskNode): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  onTestFinished(() => client.close())
  await client.listTools()
  return client
}

async function names(client: Client): Promise<readonly string[]> {
  return (await client.listTools()).tools.map(({ name }) => name)
}

interface Called {
  readonly text: string
  readonly isError: boolean
  readonly hint: string | undefined
}

async function call(client: Client, name: string, args: Record<string, unknown>): Promise<Called> {
  const { content, isError } = (await client.callTool({ name, arguments: args })) as CallToolResult
  const [text = '', hint] = content.map((block) => (block.type === 'text' ? block.text : ''))
  return { text, isError: isError === true, hint }
}

interface Taken {
  readonly request_id: string
  readonly deadline: string
  readonly body: string
}

async function taken(client: Client, type: string, channel: string): Promise<Taken | undefined> {
  const { text } = await call(client, 'request_serve', { channel, type, wait_timeout_seconds: 60 })
  const [request] = JSON.parse(text) as Taken[]
  return request
}

function ask(body: string): Promise<Called> {
  return call(elsewhere, 'query_send', { channel: 'ask', body, timeout_seconds: 60 })
}

function wait(after: number, seconds: number): Promise<Called> {
  return call(model, 'events_store_wait', { channel: 'log', after_sequence: after, wait_timeout_seconds: seconds })
}

describe.each(ENGINES)('tools - responders on %s', (kind) => {
  beforeEach(async () => {
    host = await startTaskHost(undefined, await storeOf(kind))
    const options = { responders: host.system }
    model = await connect(await host.node({}, options))
    elsewhere = await connect(await host.node({}, options))
  })

  test('M31 - they are there only on request, after the others', async () => {
    const plain = await connect(await host.node())
    const added = ['request_serve', 'request_reply', 'events_store_wait']
    expect(await names(model)).toEqual([...(await names(plain)), ...added])
  })

  test.each([0, 1])('M31 - a model takes a query and answers it, at node %i', async (at) => {
    const reply = ask('how many?')
    const request = await taken(model, 'queries', 'ask')
    expect(request).toMatchObject({ body: 'how many?', metadata: '', tags: {} })
    expect(Date.parse(request?.deadline ?? '')).toBeGreaterThan(Date.now())
    const answer = { request_id: request?.request_id, body: 'four', metadata: 'm', tags: { a: 'b' } }
    const client = at === 0 ? model : elsewhere
    expect(await call(client, 'request_reply', answer)).toMatchObject({ text: 'Request answered.', isError: false })
    expect(await reply).toEqual({ text: 'four', isError: false, hint: 'Its metadata: m\nIts tags: {"a":"b"}' })
    const again = await call(client, 'request_reply', answer)
    expect([again.isError, again.text]).toEqual([true, expect.stringMatching(/^REQUEST_UNKNOWN: /)])
  })

  test('M31 - a model rejects a command with a reason', async () => {
    const sent = call(elsewhere, 'command_send', { channel: 'do', body: 'x', timeout_seconds: 60 })
    const request = await taken(model, 'commands', 'do')
    await call(model, 'request_reply', { request_id: request?.request_id, error: 'not today' })
    expect(await sent).toMatchObject({ isError: true, text: expect.stringContaining('not today') })
  })

  test('M31 - each call takes one request, and the others wait for the next call', async () => {
    const replies = ['a', 'b', 'c'].map(ask)
    await expect.poll(async () => (await host.user.channels.info('queries', 'ask')).incoming).toBe(3)
    const bodies: string[] = []
    for (const client of [model, elsewhere, model]) {
      const request = await taken(client, 'queries', 'ask')
      bodies.push(request?.body ?? '')
      await call(client, 'request_reply', { request_id: request?.request_id, body: `re: ${request?.body}` })
    }
    expect(bodies.toSorted()).toEqual(['a', 'b', 'c'])
    expect((await Promise.all(replies)).map(({ text }) => text)).toEqual(['re: a', 're: b', 're: c'])
  })

  test('M31 - without a request it ends empty, and no responder is left', async () => {
    const args = { channel: 'ask', type: 'queries', wait_timeout_seconds: 1 }
    expect(await call(model, 'request_serve', args)).toMatchObject({ text: '[]', isError: false })
    expect(await call(elsewhere, 'query_send', { channel: 'ask', body: 'x', timeout_seconds: 1 })).toMatchObject({
      text: expect.stringMatching(/^NO_SUBSCRIBER: /),
    })
  })

  test('M31 - events_store_wait returns the next event, at once or when it is stored', async () => {
    const missing = await wait(0, 1)
    expect(missing).toMatchObject({ text: '[]', hint: 'There is no channel "log" of type events_store.' })
    await host.user.eventsStore.publish('log', { body: 'one' })
    expect(JSON.parse((await wait(0, 60)).text)).toMatchObject([{ body: 'one', sequence: 1 }])
    const next = wait(1, 60)
    await expect.poll(async () => (await host.user.channels.info('events_store', 'log')).subscribers).toBe(1)
    await host.user.eventsStore.publish('log', { body: 'two' })
    expect(JSON.parse((await next).text)).toMatchObject([{ body: 'two', sequence: 2 }])
  })
})
