import { expect, test } from 'vitest'

import { postJson, register, startAgent, withResult } from './support/agent.ts'
import { rpc } from './support/mcp.ts'
import { serveLogged } from './support/server.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`
const tracestate = 'vendor=a,other=b'

test('A5 - traceparent and tracestate reach the agent from /a2a and from the agent tools, and the trace is in the log', async () => {
  const { server, lines } = await serveLogged()
  const { url } = server.http
  const agent = await startAgent(withResult('yes'))
  await register(url, { agent_id: 'agent-1', name: 'One', url: agent.url })
  const traced = { traceparent, tracestate, 'x-other': '1' }
  const to = { agent_id: 'agent-1' }
  const tool = (name: string, args: object, headers: Record<string, string>) =>
    rpc(url, 'tools/call', { name, arguments: { ...to, ...args } }, headers)
  await postJson(`${url}/a2a/agent-1`, { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} }, traced)
  await tool('agent_send', { message: 'hi' }, traced)
  await tool('agent_send', { message: 'hi', blocking: false }, traced)
  await tool('agent_query', { method: 'tasks/get' }, traced)
  await expect.poll(() => agent.asked.length, { timeout: 20_000 }).toBe(4)
  for (const { headers } of agent.asked) expect(headers).toMatchObject({ traceparent, tracestate })
  // The gateway is transparent; a tool call's other headers are between the model's client and /mcp.
  expect(agent.asked.map(({ headers }) => headers['x-other'])).toEqual(['1', undefined, undefined, undefined])
  await tool('agent_send', { message: 'hi' }, {})
  await tool('agent_send', { message: 'hi' }, { traceparent: 'rubbish "} {' })
  expect(agent.asked.at(-2)?.headers).not.toHaveProperty('traceparent')
  await server.close()
  const requests = lines.filter(({ msg }) => msg === 'request')
  expect(requests.map(({ path, trace }) => [path, trace])).toEqual([
    ['/agents/register', undefined],
    ['/a2a/agent-1', TRACE],
    ['/mcp', TRACE],
    ['/mcp', TRACE],
    ['/mcp', TRACE],
    ['/mcp', undefined],
    ['/mcp', undefined],
  ])
})
