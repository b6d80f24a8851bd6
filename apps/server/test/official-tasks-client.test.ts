import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { RawClientDispatch, TaskEnabledSession } from '@modelcontextprotocol/ext-tasks/client'
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  resultFromTaskOutcome,
} from '@modelcontextprotocol/ext-tasks/client'
import type { JsonValue } from '@modelcontextprotocol/ext-tasks/core'
import { CallToolResultV2Schema, isTaskStatusNotificationV2 } from '@modelcontextprotocol/ext-tasks/core/v2'
import { encodeText } from '@signalbox/broker-core'
import { isJsonObject } from '@signalbox/http-kit/internal'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'

import type { RunningServer } from '../src/server.ts'
import { register, startAgent } from './support/agent.ts'
import { serve } from './support/server.ts'

const INFO = { name: 'test', version: '1.0.0' }
const VERSION = '2026-07-28'
const CAPABILITIES = { extensions: { 'io.modelcontextprotocol/tasks': {} }, elicitation: { form: {} } }
const META = {
  'io.modelcontextprotocol/protocolVersion': VERSION,
  'io.modelcontextprotocol/clientInfo': INFO,
  'io.modelcontextprotocol/clientCapabilities': CAPABILITIES,
}

/** Posts a message as a client of 2026-07-28 does. */
function post(url: string, message: Readonly<Record<string, unknown>>, init: RequestInit = {}): Promise<Response> {
  const params = isJsonObject(message['params']) ? message['params'] : {}
  return fetch(url, {
    ...init,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': VERSION,
      'mcp-method': String(message['method']),
      'mcp-name': [params['name'], params['taskId']].find((name) => typeof name === 'string') ?? '',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  })
}

/** Sends the requests that the client of the core protocol does not know, as hosts of the Tasks client have to. */
function dispatchTo(url: string): RawClientDispatch {
  return async (request, { signal } = {}) => {
    const response = await post(url, isJsonObject(request) ? request : {}, signal === undefined ? {} : { signal })
    const answer = (await response.json()) as { result: JsonValue; error?: { code: number; message: string } }
    return answer.error === undefined
      ? { kind: 'result', result: answer.result }
      : { kind: 'error', error: answer.error }
  }
}

const unexpected = (): never => {
  throw new Error('the server asks for elicitation only')
}

/** The user of the client, who answers each question with "two". */
const answersWithTwo = createApplicationInputHandler({
  elicitation: () => ({ action: 'accept', content: { answer: 'two' } }),
  sampling: unexpected,
  roots: unexpected,
})

let server: RunningServer
let session: TaskEnabledSession
/** Lets the responders and the agent answer, once their call is a task. */
let answer: () => void

beforeEach(async () => {
  server = await serve({ connectors: { mcp: { tasks: { afterMs: 20 } } } })
  const responder = server.broker.as({ clientId: 'responder' })
  const { promise: later, resolve } = Promise.withResolvers<void>()
  answer = resolve
  await responder.commands.subscribe('do', {}, async ({ body }) => {
    await later
    return Buffer.from(body).toString() === 'no' ? { error: 'not today' } : {}
  })
  await responder.queries.subscribe('ask', {}, async () => {
    await later
    return { body: encodeText('42') }
  })
  const agent = await startAgent(async ({ method, params }, response) => {
    await later
    const { taskId } = isJsonObject(params['message']) ? params['message'] : {}
    const asks = method === 'message/send' && taskId === undefined
    const state = asks ? 'input-required' : 'completed'
    const message = { kind: 'message', parts: [{ kind: 'text', text: 'for how many?' }] }
    const result = { kind: 'task', id: 't1', contextId: 'c1', status: { state, ...(asks ? { message } : {}) } }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  })
  await register(server.http.url, { agent_id: 'clerk', name: 'Clerk', url: agent.url })

  const url = `${server.http.url}/mcp`
  const options = { capabilities: CAPABILITIES, versionNegotiation: { mode: 'auto' as const } }
  const client = new Client(INFO, options)
  client.setRequestHandler('elicitation/create', () => ({ action: 'decline' }))
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  onTestFinished(() => client.close())
  session = createTaskSessionFromClient(client, {
    endpointId: 'test',
    rawDispatch: dispatchTo(url),
    v2RequestFraming: { protocolVersion: VERSION, clientInfo: INFO, clientCapabilities: CAPABILITIES },
    onInputRequest: answersWithTwo,
  })
  onTestFinished(() => session.close())
})

describe('@modelcontextprotocol/ext-tasks', () => {
  test.each([
    ['command_send', { channel: 'do', body: 'x' }, false, 'Command executed'],
    ['command_send', { channel: 'do', body: 'no' }, true, 'not today'],
    ['query_send', { channel: 'ask', body: 'x' }, false, '42'],
    ['agent_send', { agent_id: 'clerk', message: 'book a table' }, false, '"state":"completed"'],
    ['agent_query', { agent_id: 'clerk', method: 'tasks/get', params: { id: 't1' } }, false, '"state":"completed"'],
  ] as const)('M19 - it completes the task of %s %j', async (tool, args, isError, text) => {
    const execution = await session.callTool(tool, args)
    expect(execution.kind).toBe('task')
    answer()
    const { outcome } = await execution.settle()
    const result = CallToolResultV2Schema.parse(resultFromTaskOutcome(outcome))
    expect(result).toMatchObject({
      resultType: 'complete',
      isError,
      content: [{ type: 'text', text: expect.stringContaining(text) }],
    })
  })

  test('M19 - it reads the notifications of a task, the last one with a result that it accepts', async () => {
    const execution = await session.callTool('query_send', { channel: 'ask', body: 'x' })
    if (execution.kind !== 'task') throw new Error('no task')
    const { taskId } = execution.handle
    const params = { notifications: { taskIds: [taskId] }, _meta: META }
    const stream = await post(`${server.http.url}/mcp`, { method: 'subscriptions/listen', params })
    answer()
    const messages = [...(await stream.text()).matchAll(/^data: (.*)$/gm)].map(([, data = '']): unknown =>
      JSON.parse(data),
    )
    const notifications = messages.filter((message) => isTaskStatusNotificationV2(message))
    const last = notifications.at(-1)?.params
    if (last?.status !== 'completed') throw new Error('the last notification is not the completed task')
    expect(CallToolResultV2Schema.parse(last.result)).toMatchObject({ resultType: 'complete', isError: false })
  })
})
