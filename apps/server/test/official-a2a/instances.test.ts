import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { until } from '@signalbox/testkit/until'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { postJson, register } from '../support/agent.ts'
import type { OfficialAgents } from './agents/process.ts'
import { startOfficialAgents } from './agents/process.ts'
import type { Result } from './clients/client.ts'
import { CONNECT } from './clients/connect.ts'
import type { Gateway } from './gateway.ts'
import { gatewayUrl, startGateway } from './gateway.ts'

const V10 = { 'a2a-version': '1.0' }
const HOLD = { parts: [{ text: 'hold' }] }

async function instancesAt(base: string): Promise<number> {
  const card = (await (await fetch(`${base}/agents/many`)).json()) as { instances?: readonly unknown[] }
  return card.instances?.length ?? 0
}

describe.skipIf(NATS_SERVER === undefined)('instances made with the official SDK, across nodes', () => {
  let nats: NatsServer
  let processes: readonly OfficialAgents[]
  let one: Gateway
  let two: Gateway
  beforeAll(async () => {
    const starting = ['a', 'b', 'c'].map(() => startOfficialAgents())
    ;[nats, processes] = await Promise.all([NatsServer.start(), Promise.all(starting)])
    const node = () => startGateway({ engine: 'nats', nats: { servers: [nats.url] } })
    ;[one, two] = await Promise.all([node(), node()])
    for (const [index, agents] of processes.entries()) {
      const url = agents.url('v10')
      const card = (await (await fetch(`${url}.well-known/agent-card.json`)).json()) as object
      const { http } = index % 2 === 0 ? one : two
      await register(http, { ...card, agent_id: 'many', instance_id: `i${index}`, url })
    }
    for (const { http } of [one, two]) await until(async () => (await instancesAt(http)) === 3)
  })
  afterAll(async () => {
    await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()])
    await nats[Symbol.asyncDispose]()
    for (const agents of processes) agents[Symbol.dispose]()
  })

  /** Lets a task continue at the instance that has it. */
  async function release(taskId: string): Promise<number> {
    const released = await Promise.allSettled(processes.map((agents) => agents.release(taskId)))
    return released.filter(({ status }) => status === 'fulfilled').length
  }

  test.each(['1.0', '0.3', 'rest'] as const)(
    'A29 - instances: client %s follows its tasks, at whichever node and instance they are',
    async (version) => {
      const [here, there] = [
        await CONNECT[version](gatewayUrl(one.http, 'many')),
        await CONNECT[version](gatewayUrl(two.http, 'many')),
      ]
      const begun: { readonly taskId: string; readonly stream: AsyncIterator<Result> }[] = []
      for (let i = 0; i < 6; i++) {
        const stream = here.stream(HOLD)[Symbol.asyncIterator]()
        const { taskId } = (await stream.next()).value as Result
        await stream.next()
        begun.push({ taskId, stream })
      }
      for (const { taskId, stream } of begun) {
        for (const client of [here, there, there]) expect(await client.get(taskId)).toMatchObject({ taskId })
        const again = there.resubscribe(taskId)[Symbol.asyncIterator]()
        expect((await again.next()).value).toMatchObject({ taskId })
        expect(await release(taskId)).toBe(1)
        expect(JSON.stringify([await remaining(stream), await remaining(again)]).match(/completed/gi)).toHaveLength(2)
      }
      await expect(here.get('unknown')).rejects.toThrow(/not found/i)
    },
  )

  test('A29 - instances: pages of a list hold each task of every instance once, the newest first', async () => {
    const client = await CONNECT['1.0'](gatewayUrl(one.http, 'many'))
    for (let i = 0; i < 8; i++) await client.send({ parts: [{ text: 'work' }] })
    const own = await Promise.all(processes.map((agents) => listTasks(agents.url('v10'), { pageSize: 100 })))
    const all = own.flatMap(({ tasks }) => tasks.map(({ id }) => id))
    expect(Math.min(...own.map(({ tasks }) => tasks.length))).toBeGreaterThan(0)

    const seen: Listed['tasks'][number][] = []
    let pageToken = ''
    do {
      // Each page from the other node: the token holds all that it needs.
      const { http } = seen.length % 2 === 0 ? one : two
      const page = await listTasks(`${http}/a2a/many`, { pageSize: 3, ...(pageToken !== '' && { pageToken }) })
      expect([page.totalSize, page.tasks.length <= 3]).toEqual([all.length, true])
      seen.push(...page.tasks)
      pageToken = page.nextPageToken
    } while (pageToken !== '')
    expect(seen.map(({ id }) => id).toSorted()).toEqual(all.toSorted())
    const times = seen.map(({ status }) => status.timestamp)
    expect(times).toEqual(times.toSorted().toReversed())
    const wrong = { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { pageToken: 'of nobody' } }
    expect(await (await postJson(`${one.http}/a2a/many`, wrong, V10)).json()).toMatchObject({ error: { code: -32602 } })
  })

  test('A28 - instances: every instance gets calls, from both nodes', async () => {
    for (const agents of processes) await agents.takeSeen()
    for (const { http } of [one, two]) {
      const client = await CONNECT['1.0'](gatewayUrl(http, 'many'))
      for (let i = 0; i < 6; i++) await client.send({ parts: [{ text: 'message' }] })
    }
    const seen = await Promise.all(processes.map(async (agents) => (await agents.takeSeen()).length))
    expect(seen.reduce((sum, count) => sum + count, 0)).toBe(12)
    expect(Math.min(...seen)).toBeGreaterThan(0)
  })
})

interface Listed {
  readonly tasks: readonly { readonly id: string; readonly status: { readonly timestamp: string } }[]
  readonly nextPageToken: string
  readonly totalSize: number
}

async function listTasks(url: string, params: object): Promise<Listed> {
  const response = await postJson(url, { jsonrpc: '2.0', id: 1, method: 'ListTasks', params }, V10)
  return ((await response.json()) as { result: Listed }).result
}

async function remaining(stream: AsyncIterator<Result>): Promise<readonly unknown[]> {
  const views: unknown[] = []
  for (;;) {
    const { done, value } = await stream.next()
    if (done === true) return views
    views.push(value.view)
  }
}
