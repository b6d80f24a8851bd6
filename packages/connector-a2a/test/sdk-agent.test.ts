import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

import type { AgentCard } from '@a2a-js/sdk'
import { TaskState } from '@a2a-js/sdk'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import type { AgentExecutor } from '@a2a-js/sdk/server'
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore, ServerCallContext } from '@a2a-js/sdk/server'
import { expect, onTestFinished, test } from 'vitest'

import { openGateway } from './gateway-host.ts'

const shouting: AgentExecutor = {
  async execute({ userMessage, taskId, contextId }, bus) {
    const said = userMessage.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join(' ')
    const metadata = undefined
    const working = { state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: '2026-01-01T00:00:00Z' }
    bus.publish(
      AgentEvent.task({ id: taskId, contextId, status: working, artifacts: [], history: [userMessage], metadata }),
    )
    const content = { $case: 'text' as const, value: said.toUpperCase() }
    const parts = [{ content, filename: '', mediaType: 'text/plain', metadata }]
    const artifact = { artifactId: 'shout', name: 'shout', description: '', parts, extensions: [], metadata }
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true, metadata }))
    const completed = { ...working, state: TaskState.TASK_STATE_COMPLETED }
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: completed, metadata }))
    bus.finished()
  },
  cancelTask: async () => {},
}

/** An agent on the official SDK 1.3, speaking A2A 0.3 through its legacy layer. */
async function startSdkAgent(): Promise<string> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const card: AgentCard = {
    name: 'Shouting',
    description: '',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '0.3' }],
    provider: undefined,
    version: '1.0.0',
    capabilities: { streaming: true, extensions: [] },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    signatures: [],
  }
  const transport = new LegacyJsonRpcTransportHandler(
    new DefaultRequestHandler(card, new InMemoryTaskStore(), shouting),
  )
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const context = new ServerCallContext({ requestedVersion: '0.3' })
    const answer = await transport.handle(await text(request), context)
    if (!(Symbol.asyncIterator in answer)) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(answer))
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for await (const event of answer) response.write(`data: ${JSON.stringify(event)}\n\n`)
    response.end()
  }
  server.on('request', (request, response) => void serve(request, response))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return url
}

const SAY_HELLO = {
  message: { kind: 'message', role: 'user', messageId: 'm-1', parts: [{ kind: 'text', text: 'hello' }] },
}

test('GW-1, GW-9 - official SDK: an agent on @a2a-js/sdk answers message/send, tasks/get, errors and message/stream', async () => {
  const host = await openGateway()
  await host.register('shouting', await startSdkAgent())
  const task = {
    kind: 'task',
    id: expect.any(String),
    status: { state: 'completed' },
    artifacts: [{ parts: [{ kind: 'text', text: 'HELLO' }] }],
  }
  const sent = await host.call('shouting', SAY_HELLO)
  expect(sent).toMatchObject({ id: 1, result: task })
  const { id } = sent.result as { id: string }
  expect(await host.call('shouting', { id }, 'tasks/get')).toMatchObject({ result: task })
  expect(await host.call('shouting', { id: 'nothing' }, 'tasks/get')).toMatchObject({
    error: { code: -32001, message: expect.stringMatching(/not found/i) },
  })
  expect(await host.call('shouting', {}, 'no/such')).toMatchObject({ error: { code: -32601 } })
  const stream = await host.post('shouting', { jsonrpc: '2.0', id: 's', method: 'message/stream', params: SAY_HELLO })
  const names = [...stream.text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)
  expect(names).toEqual(['message', 'task.artifact', 'task.done'])
  expect(stream.text).toContain('HELLO')
  // What the agent says itself is its own error, even where its code is one of the gateway's.
  expect(host.finished.map(({ errorCode }) => errorCode)).toEqual([undefined, undefined, 'agent', 'agent', undefined])
})
