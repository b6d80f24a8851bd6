import { fork } from 'node:child_process'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { fileURLToPath } from 'node:url'

import { Message } from '@a2a-js/sdk'
import { ClientFactory } from '@a2a-js/sdk/client'
import { describe, expect, onTestFinished, test } from 'vitest'

import { openGateway } from './gateway-host.ts'
import { StreamClient } from './stream/client.ts'
import { listen, openHost } from './stream/host.ts'

/** The URL of an agent on the official SDK, in a process of its own. */
async function sdkAgent(): Promise<string> {
  const child = fork(fileURLToPath(new URL('stream/sdk-agent-main.ts', import.meta.url)), { execArgv: [] })
  onTestFinished(() => void child.kill())
  const [url] = (await once(child, 'message')) as [string]
  return url
}

test('native - the official client calls an agent with nothing but the URL of the gateway', async () => {
  const host = await openGateway()
  const url = await sdkAgent()
  await host.registry.register(
    { agent_id: 'sample', name: 'sample', url, capabilities: { streaming: true } },
    { clientId: 'owner' },
  )
  const client = await new ClientFactory().createFromUrl(`${host.base}/a2a/sample/`)
  const message = Message.fromJSON({ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'work' }] })
  const seen: string[] = []
  let taskId = ''
  for await (const { payload } of client.sendMessageStream({
    message,
    tenant: '',
    configuration: undefined,
    metadata: undefined,
  })) {
    seen.push(payload?.$case ?? '')
    if (payload?.$case === 'task') taskId = payload.value.id
  }
  expect(seen).toEqual(['task', 'statusUpdate', 'artifactUpdate', 'statusUpdate'])
  expect((await client.getTask({ id: taskId, tenant: '', historyLength: 0 })).artifacts).toHaveLength(1)
  await expect(client.getTask({ id: 'nothing', tenant: '', historyLength: 0 })).rejects.toThrow(/not found/i)
  await host.deregister('sample')
  await expect(client.getTask({ id: taskId, tenant: '', historyLength: 0 })).rejects.toThrow('agent not found: sample')
  expect(host.finished.map(({ method }) => method)).toEqual(['message/stream', 'tasks/get', 'tasks/get', 'tasks/get'])
})

/** Calls `message/stream` of A2A 0.3 through the broker. */
async function stream(url: string, text: string): Promise<readonly (readonly [string, string])[]> {
  const message = { kind: 'message', role: 'user', messageId: 'u', parts: [{ kind: 'text', text }] }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'message/stream', params: { message } })
  const client = await StreamClient.open(url, { body })
  const events = await client.all()
  if (!client.isStream) throw new Error(client.text)
  return events.map(({ event, envelope: { payload } }) => [event, payload.status?.state ?? payload.kind])
}

describe('A8 - an agent on the official SDK', () => {
  test('A8 - its stream of A2A 0.3, through the legacy layer', async () => {
    const host = await openHost(await sdkAgent())
    expect(await stream(host.base, 'work')).toEqual([
      ['message', 'submitted'],
      ['task.status', 'working'],
      ['task.artifact', 'artifact-update'],
      ['task.done', 'completed'],
    ])
    expect((await stream(host.base, 'fail')).at(-1)).toEqual(['task.error', 'failed'])
    expect(await stream(host.base, 'message')).toEqual([
      ['message', 'message'],
      ['task.done', 'message'],
    ])
  })

  test('A8 - its stream of A2A 1.0', async () => {
    const agent = await sdkAgent()
    // Names the version, as the caller's own header would.
    const { url } = await listen((request, response) => {
      const headers = { ...request.headers, 'a2a-version': '1.0' }
      const outgoing = httpRequest(agent, { method: 'POST', headers }, (incoming) => {
        response.writeHead(incoming.statusCode ?? 0, incoming.headers)
        incoming.pipe(response)
      })
      request.pipe(outgoing)
    })
    const host = await openHost(url)
    const message = { role: 'ROLE_USER', messageId: 'u', parts: [{ text: 'work' }] }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendStreamingMessage', params: { message } })
    const client = await StreamClient.open(host.base, { body })
    const events = await client.all()
    expect(events.map(({ event, envelope: { payload } }) => [event, Object.keys(payload)])).toEqual([
      ['message', ['task']],
      ['task.status', ['statusUpdate']],
      ['task.artifact', ['artifactUpdate']],
      ['task.done', ['statusUpdate']],
    ])
    expect(events.at(-1)?.envelope.payload.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED')
  })
})
