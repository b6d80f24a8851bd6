import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { register } from '../support/agent.ts'
import { callTool } from '../support/mcp.ts'
import type { OfficialAgents } from './agents/process.ts'
import { startOfficialAgents } from './agents/process.ts'
import type { Gateway } from './gateway.ts'
import { registerOfficial, startGateway } from './gateway.ts'

// The tools of /mcp and the stream by GET, with agents that are made as the READMEs of the SDKs have it.

let agents: OfficialAgents
let gateway: Gateway
beforeAll(async () => {
  ;[agents, gateway] = await Promise.all([startOfficialAgents(), startGateway()])
  for (const agent of ['v10', 'both', 'v03'] as const) await registerOfficial(gateway.http, agents, agent)
  for (const agent of ['v10', 'v03'] as const) {
    const id = `bare-${agent}`
    await register(gateway.http, { agent_id: id, name: id, url: agents.url(agent) })
  }
})
afterAll(async () => {
  agents[Symbol.dispose]()
  await gateway[Symbol.asyncDispose]()
})

const AGENTS = ['v10', 'both', 'v03', 'bare-v10', 'bare-v03'] as const

describe.each(AGENTS)('agent %s', (agent) => {
  test('agent_send - an agent of an official SDK answers with a message', async () => {
    const { text, isError } = await callTool(gateway.http, 'agent_send', { agent_id: agent, message: 'message' })
    expect([isError, text]).toEqual([false, expect.stringContaining('hello')])
  })

  test('agent_send - an agent of an official SDK answers with a task', async () => {
    const { text, isError } = await callTool(gateway.http, 'agent_send', { agent_id: agent, message: 'work' })
    expect([isError, text]).toEqual([false, expect.stringMatching(/part two.*|completed/is)])
    expect(text).toMatch(/completed/i)
  })

  test('agent_query - an agent of an official SDK answers a query for a task, and with its own error', async () => {
    const { text: sent } = await callTool(gateway.http, 'agent_send', { agent_id: agent, message: 'work' })
    const [, id] = /"id":\s*"([0-9a-f-]{36})"/.exec(sent) ?? []
    const query = (params: object) =>
      callTool(gateway.http, 'agent_query', { agent_id: agent, method: 'tasks/get', params })
    const found = await query({ id })
    expect([found.isError, found.text]).toEqual([false, expect.stringContaining(`${id}`)])
    const missing = await query({ id: 'nothing' })
    expect([missing.isError, missing.text]).toEqual([true, expect.stringContaining('-32001')])
  })

  test('GET stream - the stream of an agent of an official SDK is relayed to its end', async () => {
    const response = await fetch(`${gateway.http}/a2a/${agent}/stream?message=work`)
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const names = [...(await response.text()).matchAll(/^event: (.*)$/gm)].map(([, name]) => name)
    expect(names).toEqual(['message', 'task.status', 'task.artifact', 'task.artifact', 'task.done'])
  })
})
