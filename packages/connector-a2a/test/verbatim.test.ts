import { expect, test } from 'vitest'

import { startAgent } from './agents.ts'
import { messageSend, openGateway } from './gateway-host.ts'

test('A4 - gateway: a request reaches the agent byte for byte, and its result comes back', async () => {
  const host = await openGateway()
  const agent = await startAgent()
  await host.register('echo-agent', agent.url)
  const body = messageSend('x', { message: { parts: [{ text: 'hällo' }] } })
  const answer = await host.post('echo-agent', body)
  expect(answer.text).toBe(`{"jsonrpc":"2.0","id":"x","result":${body}}`)
  expect(answer.status).toBe(200)
  expect(agent.asked[0]?.body).toBe(body)
  expect(host.failures).toEqual([])
  expect(host.finished).toMatchObject([{ agentId: 'echo-agent', method: 'message/send', status: 'success' }])
})
