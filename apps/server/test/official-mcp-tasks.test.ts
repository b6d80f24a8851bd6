import { Client, fromJsonSchema, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import type { AgentName, OfficialAgents } from './official-a2a/agents/process.ts'
import { startOfficialAgents } from './official-a2a/agents/process.ts'
import type { Gateway } from './official-a2a/gateway.ts'
import { registerOfficial, startGateway } from './official-a2a/gateway.ts'
import { PATIENT } from './support/nodes.ts'
import type { Task } from './support/tasks.ts'
import { answerTask, getTask, startTask, taskRequest, untilTask } from './support/tasks.ts'

const AGENTS = ['v10', 'v03', 'both'] as const satisfies readonly AgentName[]

let agents: OfficialAgents
let gateway: Gateway
beforeAll(async () => {
  agents = await startOfficialAgents()
  gateway = await startGateway({ connectors: { mcp: { tasks: { afterMs: 50 } } } })
  for (const agent of AGENTS) await registerOfficial(gateway.http, agents, agent)
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  agents[Symbol.dispose]()
})

describe.each(AGENTS)('official agent %s', (agent_id) => {
  test('M20 - it asks for input, and the answer continues its task', async () => {
    const taskId = await startTask(gateway.http, 'agent_send', { agent_id, message: 'ask' })
    const asked = await untilTask(gateway.http, taskId, 'input_required')
    expect(Object.values(asked.inputRequests ?? {})).toMatchObject([{ params: { message: 'which one?' } }])
    await answerTask(gateway.http, asked, 'the red one')
    const { result } = await untilTask(gateway.http, taskId, 'completed')
    expect(result?.isError).toBe(false)
    expect(result?.content[0]?.text).toMatch(/"state":"(?:completed|TASK_STATE_COMPLETED)"/)
  })

  test('M20 - tasks/cancel cancels its task', async () => {
    const taskId = await startTask(gateway.http, 'agent_send', { agent_id, message: 'ask' })
    await untilTask(gateway.http, taskId, 'input_required')
    await agents.takeSeen()
    await taskRequest(gateway.http, 'tasks/cancel', { taskId })
    const methods: string[] = []
    await expect
      .poll(async () => methods.push(...(await agents.takeSeen()).map(({ method }) => method)), PATIENT)
      .toBeGreaterThan(0)
    expect(methods).toEqual([agent_id === 'v10' ? 'CancelTask' : 'tasks/cancel'])
  })
})

describe('@modelcontextprotocol/client 2', () => {
  const anything = fromJsonSchema<Partial<Task>>({ type: 'object' })

  test('M19 - it gets, updates and cancels tasks; it reports the task of a tool call as a result type that it lacks', async () => {
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} }, elicitation: { form: {} } }
    const client = new Client(
      { name: 'test', version: '1.0.0' },
      { capabilities, versionNegotiation: { mode: 'auto' } },
    )
    client.setRequestHandler('elicitation/create', () => ({ action: 'decline' }))
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.http}/mcp`)))
    onTestFinished(() => client.close())
    expect(client.getServerCapabilities()).toMatchObject({ extensions: { 'io.modelcontextprotocol/tasks': {} } })
    const message = { agent_id: 'v10', message: 'ask' }
    await expect(client.callTool({ name: 'agent_send', arguments: message })).rejects.toMatchObject({
      data: { resultType: 'task' },
    })
    const taskId = await startTask(gateway.http, 'agent_send', message)
    const asked = await untilTask(gateway.http, taskId, 'input_required')
    const seen = await client.request({ method: 'tasks/get', params: { taskId } }, anything)
    expect(seen).toMatchObject({ taskId, status: 'input_required', inputRequests: asked.inputRequests })
    const inputResponses = { unknown: { action: 'accept' } }
    await client.request({ method: 'tasks/update', params: { taskId, inputResponses } }, anything)
    await client.request({ method: 'tasks/cancel', params: { taskId } }, anything)
    expect(await getTask(gateway.http, taskId)).toMatchObject({ status: 'cancelled' })
    const unknown = client.request({ method: 'tasks/get', params: { taskId: 'ü' } }, anything)
    await expect(unknown).rejects.toMatchObject({ code: -32602 })
  })
})
