import { freePort } from '@signalbox/testkit/free-port'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { describe, expect, test } from 'vitest'

import type { Asked, Script } from '../agents.ts'
import { json, startAgent } from '../agents.ts'
import type { Answer, GatewayHost, HostOptions } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'
import { beginStream, send, taskEvent } from '../runs/durable-host.ts'

const AWAY = 'away'
const V10 = { 'a2a-version': '1.0' }

interface Task {
  readonly id: string
  readonly status: {
    readonly state: string
    readonly message?: { readonly parts: readonly { readonly text: string }[] }
  }
  readonly artifacts?: readonly object[]
  readonly metadata?: object
}

function taskOf({ text }: Answer): Task {
  const { result } = JSON.parse(text) as { result: Task & { task?: Task } }
  return result.task ?? result
}

async function openAway(
  options: HostOptions = {},
  port?: number,
): Promise<{ readonly host: GatewayHost; readonly url: string; readonly port: number }> {
  const host = await openGateway(options)
  port ??= await freePort()
  const url = `http://127.0.0.1:${port}/`
  await host.registry.register(
    { agent_id: AWAY, name: 'away', url, a2a: { wire: '1.0', offline: 'queue' } },
    { clientId: 'owner' },
  )
  return { host, url, port }
}

const get = (host: GatewayHost, id: string): Promise<Task> =>
  host.post(AWAY, { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id } }, V10).then(taskOf)

/** The JSON-RPC method of a request; empty for one without a body. */
function methodOf({ body }: Asked): string {
  return body === '' ? '' : (JSON.parse(body) as { method: string }).method
}

/** Answers a message with the events of a task; it knows the task under its own id. */
const working: Script = (_asked, response) => {
  beginStream(response)
  response.write(taskEvent('agents-own', { task: 'WORKING' }))
  response.write(taskEvent('agents-own', { artifact: 'made later' }))
  response.end(taskEvent('agents-own', { state: 'COMPLETED' }))
}

describe('agents that are away for a while', () => {
  test('away - an agent that is called may have states that A2A does not define', async () => {
    const { host, port } = await openAway()
    const parked = taskOf(await host.post(AWAY, send('hello', 'm1'), V10))
    await startAgent((_asked, response) => {
      beginStream(response)
      response.write(taskEvent('agents-own', { task: 'UNSPECIFIED' }))
      response.write(taskEvent('agents-own', { state: 'ALMOST_DONE' }))
      response.end(taskEvent('agents-own', { state: 'COMPLETED' }))
    }, port)
    await until(async () => (await get(host, parked.id)).status.state === 'TASK_STATE_COMPLETED')
    expect(await get(host, parked.id)).toMatchObject({ id: parked.id })
  })

  test('away - a send is parked while the agent is off, and delivered once when it is back', async () => {
    const { host, port } = await openAway()
    const parked = taskOf(await host.post(AWAY, send('hello', 'm1'), V10))
    expect(parked).toMatchObject({
      status: { state: 'TASK_STATE_SUBMITTED' },
      metadata: { 'signalbox.delivery': { state: 'stored', position: 1 } },
    })
    const agent = await startAgent(working, port)
    await until(async () => (await get(host, parked.id)).status.state === 'TASK_STATE_COMPLETED')
    expect(await get(host, parked.id)).toMatchObject({
      id: parked.id,
      artifacts: [{ parts: [{ text: 'made later' }] }],
    })
    const asked = agent.asked.filter(({ method }) => method === 'POST')
    expect(asked).toHaveLength(1)
    expect(JSON.parse(asked[0]?.body ?? '')).toMatchObject({ params: { message: { parts: [{ text: 'hello' }] } } })
    expect(asked[0]?.headers['x-broker-caller-id']).toBe('anonymous')
    const again = taskOf(await host.post(AWAY, send('hello', 'm1'), V10))
    expect([again.id, again.status.state]).toEqual([parked.id, 'TASK_STATE_COMPLETED'])
  })

  test('away - a stream that was opened meanwhile has every event, under the id that the caller knows', async () => {
    const { host, port } = await openAway()
    const response = host.post(AWAY, send('hello', 'm1', 1, 'SendStreamingMessage'), V10)
    await until(() => host.connector.openStreams() === 1)
    await startAgent(working, port)
    const { text } = await response
    expect(text).not.toContain('agents-own')
    expect([...text.matchAll(/TASK_STATE_([A-Z]+)/g)].map(([, state]) => state)).toEqual([
      'SUBMITTED',
      'WORKING',
      'COMPLETED',
    ])
  })

  test('away - an agent that is there is called as before', async () => {
    const { host, port } = await openAway()
    const agent = await startAgent((asked, response) => {
      const { id } = JSON.parse(asked.body) as { id: unknown }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify({
          jsonrpc: '2.0',
          id,
          result: { message: { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } },
        }),
      )
    }, port)
    const { text } = await host.post(AWAY, send('hello', 'm1'), V10)
    expect(text).toContain('"text":"hi"')
    expect(agent.asked).toHaveLength(1)
  })

  test('away - a connection that breaks after the request is followed; the request is not sent again', async () => {
    const { host, port } = await openAway()
    const parked = taskOf(await host.post(AWAY, send('hello', 'm1'), V10))
    const agent = await startAgent((asked, response) => {
      if (methodOf(asked) === 'SendStreamingMessage') {
        beginStream(response).write(taskEvent('agents-own', { task: 'WORKING' }), () => response.destroy())
        return
      }
      response.writeHead(200, { 'content-type': 'application/json' })
      const task = { id: 'agents-own', contextId: 'c1', status: { state: 'TASK_STATE_COMPLETED' } }
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: task }))
    }, port)
    await until(async () => (await get(host, parked.id)).status.state === 'TASK_STATE_COMPLETED')
    expect(agent.asked.map(methodOf).filter((method) => method !== '')).toEqual(['SendStreamingMessage', 'GetTask'])
    expect(agent.asked.at(-1)?.body).toContain('agents-own')
  })

  test('away - a refusal of the agent ends the task, with its text', async () => {
    const { host, port } = await openAway()
    const parked = taskOf(await host.post(AWAY, send('hello', 'm1'), V10))
    await startAgent((_asked, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end('{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such product"}}')
    }, port)
    await until(async () => (await get(host, parked.id)).status.state === 'TASK_STATE_FAILED')
    expect((await get(host, parked.id)).status.message?.parts[0]?.text).toContain('no such product')
  })

  test('away - a task is followed to its end after the node that delivered it was lost', async () => {
    const folder = testFolder()
    const before = await openAway({ folder })
    const { id } = taskOf(await before.host.post(AWAY, send('hello', 'm1'), V10))
    const agent = await startAgent((asked, response) => {
      if (methodOf(asked) !== 'SendStreamingMessage') return response.end()
      beginStream(response).write(taskEvent('agents-own', { task: 'WORKING' }))
      return undefined
    }, before.port)
    await until(async () => (await get(before.host, id)).status.state === 'TASK_STATE_WORKING')
    await before.host.close()
    agent.script = (asked, response) => {
      const task = { id: 'agents-own', contextId: 'c1', status: { state: 'TASK_STATE_COMPLETED' } }
      if (methodOf(asked) === 'GetTask') json(response, JSON.stringify({ jsonrpc: '2.0', id: 1, result: task }))
      else response.end()
    }
    const { host } = await openAway({ folder }, before.port)
    await until(async () => (await get(host, id)).status.state === 'TASK_STATE_COMPLETED')
    expect(agent.asked.filter((asked) => methodOf(asked) === 'SendStreamingMessage')).toHaveLength(1)
  })

  test('away - a request does not wait for the end of another one', async () => {
    const { host, port } = await openAway()
    const texts = ['slow', ...Array.from({ length: 8 }, () => 'quick')]
    const ids: string[] = []
    for (const [i, text] of texts.entries()) ids.push(taskOf(await host.post(AWAY, send(text, `m${i}`), V10)).id)
    await startAgent((asked, response) => {
      const task = asked.body.includes('slow') ? 'WORKING' : 'COMPLETED'
      if (methodOf(asked) !== 'SendStreamingMessage') response.end()
      else {
        const stream = beginStream(response)
        stream.write(taskEvent(`own-${task}`, { task }))
        if (task === 'COMPLETED') stream.end()
      }
    }, port)
    await until(async () => (await get(host, ids.at(-1) ?? '')).status.state === 'TASK_STATE_COMPLETED')
    expect((await get(host, ids[0] ?? '')).status.state).toBe('TASK_STATE_WORKING')
  })
})
