import type { ElicitRequest } from '@modelcontextprotocol/client'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import type { AgentName, OfficialAgents } from './official-a2a/agents/process.ts'
import { startOfficialAgents } from './official-a2a/agents/process.ts'
import type { Gateway } from './official-a2a/gateway.ts'
import { registerOfficial, startGateway } from './official-a2a/gateway.ts'

const AGENTS = ['v10', 'v03', 'both'] as const satisfies readonly AgentName[]

let agents: OfficialAgents
let gateway: Gateway
beforeAll(async () => {
  agents = await startOfficialAgents()
  gateway = await startGateway()
  for (const agent of AGENTS) await registerOfficial(gateway.http, agents, agent)
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  agents[Symbol.dispose]()
})

/** A client with forms and without tasks, whose user always answers in the same way. */
async function connect(answer: { action: 'accept'; content: { answer: string } } | { action: 'decline' }) {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: 'auto' } },
  )
  const shown: ElicitRequest['params'][] = []
  client.setRequestHandler('elicitation/create', ({ params }) => {
    shown.push(params)
    return answer
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.http}/mcp`)))
  onTestFinished(() => client.close())
  return { client, shown }
}

describe.each(AGENTS)('@modelcontextprotocol/client 2 and official agent %s', (agent_id) => {
  test('M20 - the user sees the question of the agent, and the call returns the result of its task', async () => {
    const { client, shown } = await connect({ action: 'accept', content: { answer: 'the red one' } })
    await agents.takeSeen()
    const result = await client.callTool({ name: 'agent_send', arguments: { agent_id, message: 'ask' } })
    expect(shown).toMatchObject([{ mode: 'form', message: 'which one?' }])
    expect(result.isError).toBe(false)
    expect(JSON.stringify(result.content)).toMatch(/completed|TASK_STATE_COMPLETED/)
    expect(await agents.takeSeen()).toHaveLength(2)
  })

  test('M20 - a user who declines ends the call', async () => {
    const { client, shown } = await connect({ action: 'decline' })
    const result = await client.callTool({ name: 'agent_send', arguments: { agent_id, message: 'ask' } })
    expect(shown).toHaveLength(1)
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^INPUT_DECLINED: /) }] })
  })
})
