import { join } from 'node:path'

import { StreamResponse } from '@a2a-js/sdk'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { register } from '../support/agent.ts'
import { serve } from '../support/server.ts'
import type { AgentName, OfficialAgents } from './agents/process.ts'
import { startOfficialAgents } from './agents/process.ts'
import type { ClientName } from './clients/connect.ts'
import { CONNECT } from './clients/connect.ts'
import { gatewayUrl } from './gateway.ts'

let agents: OfficialAgents
beforeAll(async () => {
  agents = await startOfficialAgents()
})
afterAll(() => agents[Symbol.dispose]())

/** Starts a server with this agent, whose answers it keeps. Returns the URL of the agent for clients. */
async function serveDurable(agent: AgentName): Promise<string> {
  const keyFile = join(testFolder(), 'webhooks.key')
  const { http } = await serve({ webhooks: { enable: true, keyFile, allow: ['127.0.0.1'] } })
  const url = agents.url(agent)
  const card = (await (await fetch(`${url}.well-known/agent-card.json`)).json()) as object
  await register(http.url, { ...card, agent_id: agent, url, a2a: { durable: true } })
  return gatewayUrl(http.url, agent)
}

/** Returns the state of the task in a notification, as the SDK of 1.0 reads it. */
function stateIn(body: string): string {
  const { payload } = StreamResponse.fromJSON(JSON.parse(body))
  const json = JSON.stringify(StreamResponse.toJSON({ payload }))
  return /"state":"TASK_STATE_(\w+)"/.exec(json)?.[1] ?? payload?.$case ?? ''
}

test.each([
  ['1.0', 'v10'],
  ['rest', 'v10'],
  ['1.0', 'v03'],
] as const satisfies readonly (readonly [ClientName, AgentName])[])(
  'push - the official client %s of agent %s gets the events of its task',
  async (client, agent) => {
    const url = await serveDurable(agent)
    const official = await CONNECT[client](url)
    const endpoint = await openReceiver()
    endpoint.reply = (response, received) => answer(endpoint.received.length === 1 ? 500 : 200)(response, received)
    const authentication = { scheme: 'Bearer', credentials: 'abc' }
    const push = { id: 'hook', url: endpoint.url, token: 'tok', authentication }
    const { taskId } = await official.send({ parts: [{ text: 'hold' }], immediately: true, push })
    expect(await official.listPush(taskId)).toMatchObject([{ id: 'hook', url: endpoint.url, taskId }])
    const { url: other } = await openReceiver()
    expect(await official.setPush(taskId, { id: 'more', url: other })).toMatchObject({ id: 'more' })
    expect(await official.getPush(taskId, 'more')).toMatchObject({ id: 'more', url: other, taskId })
    expect(await official.deletePush(taskId, 'more')).toBeDefined()
    await until(() => endpoint.received.length >= 2)
    await agents.release(taskId)
    await until(() => endpoint.bodies.some((body) => stateIn(body) === 'COMPLETED'))
    const seen = endpoint.bodies.map(stateIn)
    expect(seen.filter((state) => state === 'COMPLETED')).toHaveLength(1)
    expect(seen.at(-1)).toBe('COMPLETED')
    expect(seen[0]).toBe(seen[1])
    for (const { headers } of endpoint.received) {
      expect(headers).toMatchObject({ authorization: 'Bearer abc', 'x-a2a-notification-token': 'tok' })
    }
  },
)

test.each(['v10', 'v03'] as const)('push - the official client 0.3 of agent %s gets its task', async (agent) => {
  const official = await CONNECT['0.3'](await serveDurable(agent))
  const endpoint = await openReceiver()
  const push = { id: 'hook', url: endpoint.url, token: 'tok' }
  const { taskId } = await official.send({ parts: [{ text: 'hold' }], immediately: true, push })
  expect(await official.listPush(taskId)).toMatchObject([{ taskId, pushNotificationConfig: { id: 'hook' } }])
  await agents.release(taskId)
  const tasks = (): { kind: string; id: string; status: { state: string } }[] =>
    endpoint.bodies.map((body) => JSON.parse(body) as { kind: string; id: string; status: { state: string } })
  await until(() => tasks().at(-1)?.status.state === 'completed')
  expect(tasks().every(({ id, kind }) => kind === 'task' && id === taskId)).toBe(true)
})
