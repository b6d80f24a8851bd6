import { expect, test } from 'vitest'

import type { Script } from '../agents.ts'
import { json } from '../agents.ts'
import type { Answer } from '../gateway-host.ts'
import { beginStream, DURABLE, openDurable, PLAIN, send, taskEvent } from './durable-host.ts'

const V10 = { 'a2a-version': '1.0' }

/** Answers a call with a task, and a stream with its events. */
const agentScript: Script = ({ body }, response) => {
  const { id, method } = JSON.parse(body) as { id: unknown; method: string }
  if (method === 'SendMessage') {
    const task = { id: 'called', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } }
    json(response, JSON.stringify({ jsonrpc: '2.0', id, result: { task } }))
    return
  }
  beginStream(response)
  response.write(taskEvent('streamed', { task: 'WORKING' }))
  response.write(taskEvent('streamed', { artifact: 'made' }))
  response.end(taskEvent('streamed', { state: 'COMPLETED' }))
}

function resultOf({ text }: Answer): unknown {
  const { error, result } = JSON.parse(text) as { result?: unknown; error?: unknown }
  return result ?? error
}

test('log - a task of a durable agent that is away is read in the log, in either version; of another agent it is not', async () => {
  const { host, agent } = await openDurable(agentScript)
  await host.post(DURABLE, send('go', 'm1'), V10)
  await host.post(DURABLE, send('go', 'm2', 1, 'SendStreamingMessage'), V10)
  await agent.close()
  const get = (
    agentId: string,
    id: string,
    method = 'GetTask',
    headers: Record<string, string> = V10,
  ): Promise<Answer> => host.post(agentId, { jsonrpc: '2.0', id: 1, method, params: { id } }, headers)
  expect(resultOf(await get(DURABLE, 'called'))).toMatchObject({
    id: 'called',
    status: { state: 'TASK_STATE_COMPLETED' },
  })
  expect(resultOf(await get(DURABLE, 'streamed'))).toMatchObject({
    id: 'streamed',
    status: { state: 'TASK_STATE_COMPLETED' },
    artifacts: [{ parts: [{ text: 'made' }] }],
  })
  expect(resultOf(await get(DURABLE, 'streamed', 'tasks/get', { 'a2a-version': '0.3' }))).toMatchObject({
    kind: 'task',
    status: { state: 'completed' },
  })
  for (const answer of [await get(PLAIN, 'called'), await get(DURABLE, 'unknown')]) {
    expect(resultOf(answer)).toMatchObject({ data: [{ reason: 'AGENT_UNREACHABLE' }, {}] })
  }
})
