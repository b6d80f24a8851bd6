import { expect, test } from 'vitest'

import { callAgent, postJson, register, startAgent, withResult } from './support/agent.ts'
import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'

const LOOP =
  'invalid request: the request has passed through 9 brokers (X-Broker-Hops); at most 8 are allowed. Look for agents that call each other in a loop'

test('A19 - agents: brokers that are agents of one another stop after nine calls, and say why', async () => {
  const [one, two] = await Promise.all([serve(), serve()])
  await register(one.http.url, { agent_id: 'there', name: 'There', url: `${two.http.url}/a2a/back` })
  await register(two.http.url, { agent_id: 'back', name: 'Back', url: `${one.http.url}/a2a/there` })
  const error = { code: -32600, message: LOOP }
  expect(await callAgent(one.http.url, 'there', 'message/send')).toEqual({ jsonrpc: '2.0', id: 1, error })
  const sent = await callTool(one.http.url, 'agent_send', { agent_id: 'there', message: 'Hello' })
  expect(sent).toMatchObject({ isError: true, text: JSON.stringify(error) })
  const stream = { jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} }
  // The first of them opened a stream; its one event is the error of the last.
  expect(await (await postJson(`${one.http.url}/a2a/there`, stream)).text()).toContain(LOOP)
})

test('A19 - agents: X-Broker-Hops counts the brokers on the way, and over 8 is refused', async () => {
  const { http } = await serve()
  const agent = await startAgent(withResult('done'))
  await register(http.url, { agent_id: 'a1', name: 'A', url: agent.url })
  const request = { jsonrpc: '2.0', id: 1, method: 'message/send', params: {} }
  const call = { name: 'agent_send', arguments: { agent_id: 'a1', message: 'Hello' } }
  const ask = async (hops?: string): Promise<readonly unknown[]> => {
    const headers: Record<string, string> = hops === undefined ? {} : { 'x-broker-hops': hops }
    const direct = await postJson(`${http.url}/a2a/a1`, request, headers)
    const tool = await postJson(
      `${http.url}/mcp`,
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
      headers,
    )
    return [await direct.json(), await tool.json()]
  }
  const answered = expect.objectContaining({ result: expect.anything() })
  expect(await ask()).toEqual([answered, answered])
  expect(await ask('8')).toEqual([answered, answered])
  expect(agent.asked.map(({ headers }) => headers['x-broker-hops'])).toEqual(['1', '1', '9', '9'])
  for (const hops of ['9', '1, 9', '1000000', 'many', '-1']) {
    expect(await ask(hops)).toEqual([
      expect.objectContaining({ error: { code: -32600, message: expect.stringContaining('X-Broker-Hops') } }),
      expect.objectContaining({
        result: {
          isError: true,
          content: [{ type: 'text', text: expect.stringMatching(/^AGENT_LOOP: .*X-Broker-Hops/) }],
        },
      }),
    ])
  }
  expect(agent.asked).toHaveLength(4)
})

test("R8 - agents: the server's own listeners are never agents, and registering them is an error", async () => {
  const { http, api } = await serve()
  for (const { port } of [http, api]) {
    for (const host of ['127.0.0.1', 'localhost', '127.1', '[::ffff:127.0.0.1]']) {
      const card = { agent_id: 'self', name: 'Self', url: `http://${host}:${port}/a2a/self` }
      const response = await postJson(`${http.url}/agents/register`, card)
      expect([response.status, await response.json()], card.url).toEqual([
        400,
        expect.objectContaining({ error: 'CARD_INVALID', details: [expect.objectContaining({ field: 'url' })] }),
      ])
    }
  }
})
