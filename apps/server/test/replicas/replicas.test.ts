import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test } from 'vitest'

import { listed } from '../support/agent.ts'
import { PATIENT, serveNodes } from '../support/nodes.ts'
import { serve } from '../support/server.ts'
import { AGENT, Replica } from './replica.ts'
import { MOST_UNDER_WAY, runReplicas } from './scenario.ts'

/** Leaves the CPU to other tests. */
const PAUSE_MS = 40
/** Expires a replica soon. */
const HASTY = { connectors: { a2a: { agentTtlSeconds: 2 } } }
/** Keeps a replica for longer than the scenario takes to replace it, and for longer than a busy machine delays heartbeats. */
const PATIENT_REGISTRY = { connectors: { a2a: { agentTtlSeconds: 20 } } }

async function instancesAt(base: string): Promise<readonly string[]> {
  const card = (await (await fetch(`${base}/agents/${AGENT}`)).json()) as { instances?: { instance_id: string }[] }
  return (card.instances ?? []).map(({ instance_id }) => instance_id)
}

test('A28, R12 - replicas: one is killed and one is replaced under load, and only calls to the killed one fail', async () => {
  const { http } = await serve(PATIENT_REGISTRY)
  const report = await runReplicas([http.url], 2_000, PAUSE_MS)
  expect(report.failedOtherwise).toEqual([])
  expect(report.failedAtKills).toBeLessThanOrEqual(report.rounds * MOST_UNDER_WAY)
  expect(Object.keys(report.byInstance).toSorted()).toEqual(['a', 'b', 'c'])
})

test('R12 - replicas: a killed replica expires alone, and the operators see which one is alive', async () => {
  const { http, api } = await serve(HASTY)
  const [a] = [await Replica.start(http.url, 'a'), await Replica.start(http.url, 'b')]
  const read = async () => {
    const { data } = (await (await fetch(`${api.url}/api/agents`)).json()) as { data: { items: unknown[] } }
    return data.items
  }
  const alive = { is_alive: true, in_flight: 0 }
  expect(await read()).toMatchObject([
    {
      agent_id: AGENT,
      instances: [
        { instance_id: 'a', ...alive },
        { instance_id: 'b', ...alive },
      ],
    },
  ])
  await a.crash()
  await expect.poll(() => instancesAt(http.url), PATIENT).toEqual(['b'])
  const action = (body: object) =>
    fetch(`${api.url}/api/actions/deregister_agent`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agent_id: AGENT, ...body }),
    })
  expect(await (await action({ instance_id: 'a' })).json()).toMatchObject({ error: true })
  expect(await (await action({ instance_id: 'b' })).json()).toMatchObject({ error: false })
  expect(await listed(http.url)).toEqual([])
})

describe.skipIf(NATS_SERVER === undefined)('replicas across nodes', () => {
  test('A28, R12, CL-12 - replicas: two nodes see the same replicas, and lose only calls to a killed one', async () => {
    const nodes = await serveNodes(2, PATIENT_REGISTRY)
    const bases = nodes.map(({ http }) => http.url)
    const report = await runReplicas(bases, 2_000, PAUSE_MS)
    expect(report.failedOtherwise).toEqual([])
    expect(report.failedAtKills).toBeLessThanOrEqual(report.rounds * MOST_UNDER_WAY)
    for (const base of bases) {
      await expect.poll(async () => (await instancesAt(base)).toSorted(), PATIENT).toEqual(['a', 'b', 'c'])
    }
  })
})
