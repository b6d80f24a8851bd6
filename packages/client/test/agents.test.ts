import { text } from 'node:stream/consumers'

import { until } from '@signalbox/testkit/until'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, test } from 'vitest'

import { connect } from '../src/index.ts'
import { serverForFile } from './server.ts'

const file = serverForFile()
const { client } = file

interface Rpc {
  readonly id: unknown
  readonly method: string
  readonly params: { readonly message: { readonly parts: readonly { readonly text?: string }[] } }
}

function status(state: string): object {
  return { statusUpdate: { taskId: 't1', contextId: 'c1', status: { state } } }
}

/** An agent of A2A 1.0 that repeats texts; returns its URL. */
async function startEcho(): Promise<string> {
  const http = await testServer((incoming, response) => {
    const answer = async (): Promise<void> => {
      const { id, method, params }: Rpc = JSON.parse(await text(incoming))
      const rpc = (outcome: object) => JSON.stringify({ jsonrpc: '2.0', id, ...outcome })
      const said = params.message?.parts?.[0]?.text ?? ''
      const message = { messageId: 'r1', role: 'ROLE_AGENT', contextId: 'c1', parts: [{ text: said.toUpperCase() }] }
      if (method === 'SendMessage' && said === 'busy') {
        response.writeHead(503).end()
      } else if (method === 'SendMessage') {
        response.setHeader('content-type', 'application/json').end(rpc({ result: { message } }))
      } else if (method === 'SendStreamingMessage') {
        response.setHeader('content-type', 'text/event-stream')
        const artifact = { artifactId: 'a1', parts: [{ text: said }, { data: { length: said.length } }] }
        const events = [
          status('TASK_STATE_WORKING'),
          { artifactUpdate: { taskId: 't1', contextId: 'c1', artifact } },
          status('TASK_STATE_COMPLETED'),
        ]
        for (const result of events) response.write(`data: ${rpc({ result })}\n\n`)
        response.end()
      } else {
        response.setHeader('content-type', 'application/json')
        response.end(rpc({ error: { code: -32601, message: `no such method: ${method}` } }))
      }
    }
    answer().catch(() => response.writeHead(500).end())
  })
  return `${http.url}/`
}

const CARD = { name: 'Echo', a2a: { wire: '1.0' }, skills: [{ id: 'echo', name: 'Echo', tags: ['text'] }] }

test('agents - a served agent is registered, called, streamed, and removed with its client', async () => {
  const owner = connect(file.server.url)
  const agent = await owner.agents.serve({ id: 'echo', url: await startEcho(), card: CARD })
  expect(agent.id).toBe('echo')
  const sb = client()
  expect(await sb.agents.list({ skillTags: ['text'] })).toMatchObject([{ agent_id: 'echo' }])
  expect(await sb.agents.list({ skillTags: ['other'] })).toEqual([])
  expect(await sb.agents('echo').card()).toMatchObject({ agent_id: 'echo', name: 'Echo' })
  expect(await sb.agents('echo').send('hi')).toMatchObject({ text: 'HI', contextId: 'c1', state: undefined })
  const events = []
  for await (const { text: shown, data, state, taskId } of sb.agents('echo').stream('hello')) {
    events.push([shown, data, state, taskId])
  }
  expect(events).toEqual([
    ['', [], 'working', 't1'],
    ['hello', [{ length: 5 }], undefined, 't1'],
    ['', [], 'completed', 't1'],
  ])
  await owner.close()
  expect(await sb.agents.list()).toEqual([])
})

test('agents - errors have the reason of the gateway, or the code of the agent', async () => {
  const sb = client({ retries: 0 })
  await using _agent = await sb.agents.serve({ id: 'errors', url: await startEcho(), card: CARD })
  await expect(sb.agents('nobody').send('hi')).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND', retryable: false })
  await expect(sb.agents('nobody').stream('hi').next()).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND' })
  await expect(sb.agents('errors').call('GetTask', { id: 'x' })).rejects.toMatchObject({
    code: 'AGENT_ERROR',
    details: { code: -32601 },
  })
  await expect(sb.agents('errors').send('busy')).rejects.toMatchObject({ code: 'AGENT_UNREACHABLE' })
  await expect(sb.agents.serve({ id: 'No', url: 'ftp://x' })).rejects.toMatchObject({
    code: 'CARD_INVALID',
    problems: [{ name: 'agent_id' }, { name: 'url' }],
  })
})

test('agents - an agent that the server lost is registered again', async () => {
  const sb = client({ onError: () => {} })
  await using _agent = await sb.agents.serve({ id: 'lost', url: await startEcho(), card: CARD, heartbeat: '50ms' })
  expect((await fetch(`${file.server.url}/agents/lost`, { method: 'DELETE' })).status).toBe(200)
  await until(async () => (await sb.agents.list()).some((card) => card['agent_id'] === 'lost'))
  expect(await sb.agents('lost').send('again')).toMatchObject({ text: 'AGAIN' })
})

test('agents - each server of an agent keeps its own registration, and removes no other', async () => {
  const sb = client({ onError: () => {} })
  const instances = async (): Promise<readonly string[]> => {
    const card = (await sb.agents.list()).find((one) => one['agent_id'] === 'many')
    const listed = card?.['instances']
    return Array.isArray(listed) ? listed.map((one: { instance_id: string }) => one.instance_id).sort() : []
  }
  const serve = async (instance: string) =>
    sb.agents.serve({ id: 'many', instance, url: await startEcho(), card: CARD, heartbeat: '50ms' })
  const [a, b] = [await serve('a'), await serve('b')]
  expect(await instances()).toEqual(['a', 'b'])
  await fetch(`${file.server.url}/agents/many?instance_id=a`, { method: 'DELETE' })
  await until(async () => (await instances()).length === 2)
  await a.close()
  expect(await instances()).toEqual(['b'])
  expect(await sb.agents('many').send('hi')).toMatchObject({ text: 'HI' })
  await b.close()
  expect(await sb.agents.list()).toEqual([])
})

test('agents - a server whose registration was replaced gets an error, and does not remove its successor', async () => {
  const errors: unknown[] = []
  const sb = client({ onError: (error) => errors.push(error) })
  const older = await sb.agents.serve({ id: 'swap', url: await startEcho(), card: CARD, heartbeat: '50ms' })
  const url = await startEcho()
  await using _newer = await sb.agents.serve({ id: 'swap', url, card: CARD })
  await until(() => errors.length > 0)
  expect(errors[0]).toMatchObject({ code: 'INSTANCE_NOT_FOUND' })
  await older.close()
  expect(await sb.agents('swap').card()).toMatchObject({ name: 'Echo' })
  expect((await sb.agents.list()).map((card) => card['url'])).toEqual([url])
})
