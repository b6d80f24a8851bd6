import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { until } from '@signalbox/testkit/until'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { register } from '../support/agent.ts'
import type { OfficialAgents } from './agents/process.ts'
import { startOfficialAgents } from './agents/process.ts'
import type { Result } from './clients/client.ts'
import { CONNECT } from './clients/connect.ts'
import type { Gateway } from './gateway.ts'
import { gatewayUrl, startGateway } from './gateway.ts'

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

async function remaining(stream: AsyncIterator<Result>): Promise<readonly unknown[]> {
  const views: unknown[] = []
  for (;;) {
    const { done, value } = await stream.next()
    if (done === true) return views
    views.push(value.view)
  }
}
