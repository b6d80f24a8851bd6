import { expect, test } from 'vitest'

import { callAgent, register } from './support/agent.ts'
import { startSdkAgent } from './support/sdk-agent.ts'
import { serve } from './support/server.ts'

const SAY_HELLO = {
  message: { kind: 'message', role: 'user', messageId: 'm-1', parts: [{ kind: 'text', text: 'hello' }] },
}
const SHOUTED = {
  kind: 'task',
  id: expect.any(String),
  status: { state: 'completed' },
  artifacts: [{ parts: [{ kind: 'text', text: 'HELLO' }] }],
}

async function registered(): Promise<string> {
  const { http } = await serve()
  await register(http.url, { agent_id: 'shouting', name: 'Shouting', url: await startSdkAgent() })
  return http.url
}

test('GW-1 - official SDK: an agent on @a2a-js/sdk answers message/send, tasks/get and with its own errors', async () => {
  const base = await registered()
  const call = (method: string, params: object) => callAgent(base, 'shouting', method, params)
  const sent = await call('message/send', SAY_HELLO)
  expect(sent).toMatchObject({ id: 1, result: SHOUTED })
  const { id } = (sent as { result: { id: string } }).result
  expect(await call('tasks/get', { id })).toMatchObject({ result: SHOUTED })
  expect(await call('tasks/get', { id: 'nothing' })).toMatchObject({
    error: { code: -32001, message: expect.stringMatching(/not found/i) },
  })
  expect(await call('no/such', {})).toMatchObject({ error: { code: -32601 } })
})

test('GW-9 - official SDK: the stream of an agent on @a2a-js/sdk is relayed to its end', async () => {
  const base = await registered()
  const response = await fetch(`${base}/a2a/shouting`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 's', method: 'message/stream', params: SAY_HELLO }),
  })
  const text = await response.text()
  const names = [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)
  expect(names).toEqual(['message', 'task.artifact', 'task.done'])
  expect(text).toContain('HELLO')
})
