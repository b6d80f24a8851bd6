import { expect, test } from 'vitest'

import { register } from '../support/agent.ts'
import { callTool } from '../support/mcp.ts'
import type { OfficialAgents } from './agents/process.ts'
import type { Gateway } from './gateway.ts'
import { beforeOfficial, registerOfficial } from './gateway.ts'

let agents: OfficialAgents
let gateway: Gateway

beforeOfficial(async (started) => {
  ;({ agents, gateway } = started)
  for (const agent of ['v10', 'v03', 'both'] as const) {
    await registerOfficial(gateway.http, agents, agent)
    // An owner who registers an address and a name, and nothing about versions.
    await register(gateway.http, { agent_id: `${agent}-bare`, name: agent, url: agents.url(agent) })
  }
})

/** The reply of a tool, as the agent gave it. */
async function reply(tool: string, args: object): Promise<Record<string, unknown>> {
  const { isError, text } = await callTool(gateway.http, tool, args)
  expect({ isError, text }).toMatchObject({ isError: false })
  return JSON.parse(text) as Record<string, unknown>
}

test.each(['v10', 'v10-bare', 'v03', 'v03-bare', 'both', 'both-bare'])(
  'agent tools - agent_send and agent_query reach the agent %s in the version that it speaks',
  async (agent_id) => {
    const sent = await reply('agent_send', { agent_id, message: 'work' })
    const task = (sent['task'] ?? sent) as { readonly id: string }
    expect(task).toMatchObject({
      id: expect.any(String) as string,
      status: { state: expect.stringMatching(/completed/i) as string },
    })
    const queried = await reply('agent_query', { agent_id, method: 'tasks/get', params: { id: task.id } })
    expect(queried).toMatchObject({ id: task.id })
    const in10 = await reply('agent_query', { agent_id, method: 'GetTask', params: { id: task.id } })
    expect(in10).toMatchObject({ id: task.id })
    const { isError, text } = await callTool(gateway.http, 'agent_query', {
      agent_id,
      method: 'tasks/get',
      params: { id: 'nothing' },
    })
    expect([isError, text]).toEqual([true, expect.stringContaining('-32001')])
  },
)

test.each(['v10', 'v10-bare', 'v03', 'v03-bare', 'both', 'both-bare'])(
  'agent tools - GET /a2a/{agent_id}/stream reaches the agent %s in the version that it speaks',
  async (agent_id) => {
    const response = await fetch(`${gateway.http}/a2a/${agent_id}/stream?message=work`)
    const text = await response.text()
    expect([...text.matchAll(/^event: (.*)$/gm)].at(-1)?.[1], text).toBe('task.done')
  },
)
