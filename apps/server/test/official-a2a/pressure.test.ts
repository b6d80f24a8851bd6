import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { register, startAgent } from '../support/agent.ts'
import { metric, PATIENT } from '../support/nodes.ts'
import { inFlight } from '../support/streams-across.ts'
import type { OfficialAgents } from './agents/process.ts'
import { CONNECT } from './clients/connect.ts'
import type { Gateway } from './gateway.ts'
import { beforeOfficial, gatewayUrl, registerOfficial } from './gateway.ts'

// Translated streams, which do more than those that are passed on: many at once, left, and read slowly.

let agents: OfficialAgents
let gateway: Gateway
beforeOfficial(async (started) => {
  ;({ agents, gateway } = started)
  await registerOfficial(gateway.http, agents, 'v03')
})

test('pressure - many translated streams at once are all complete', async () => {
  const client = await CONNECT['1.0'](gatewayUrl(gateway.http, 'v03'))
  const counts = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const views: unknown[] = []
      for await (const { view } of client.stream({ parts: [{ text: 'many' }] })) views.push(view)
      return [views.length, JSON.stringify(views.at(-1))]
    }),
  )
  for (const count of counts) expect(count).toEqual([63, expect.stringContaining('TASK_STATE_COMPLETED')])
  await expect.poll(() => inFlight(gateway.api, 'v03'), PATIENT).toBe(0)
})

test('pressure - nothing is left of translated streams that their clients left, at any moment', async () => {
  const client = await CONNECT['1.0'](gatewayUrl(gateway.http, 'v03'))
  await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      const leaving = new AbortController()
      const stream = client.stream({ parts: [{ text: 'hold' }] }, leaving.signal)[Symbol.asyncIterator]()
      const reading = stream.next().then(() => stream.next())
      // Half of them see the task work first; the others leave while the gateway still calls the agent.
      await (i % 2 === 0 ? reading : pause(i))
      leaving.abort()
      await reading.catch(() => {})
    }),
  )
  await expect.poll(() => inFlight(gateway.api, 'v03'), PATIENT).toBe(0)
  await expect.poll(() => metric(gateway.api, 'broker_a2a_sse_streams_active'), PATIENT).toBe(0)
})

test('pressure - a client that pauses holds back the agent of a translated stream, and misses nothing', async () => {
  const text = 'x'.repeat(20_000)
  const count = 1_500
  let written = 0
  const agent = await startAgent(async ({ body }, response) => {
    const { id } = JSON.parse(body) as { id: unknown }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (; written < count && !response.destroyed; written++) {
      const artifact = { artifactId: `${written}`, parts: [{ text }] }
      const result = { artifactUpdate: { taskId: 't', contextId: 'c', artifact } }
      const event = `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`
      if (!response.write(event)) await once(response, 'drain')
    }
    response.end()
  })
  const capabilities = { streaming: true }
  const card = { agent_id: 'eager', name: 'eager', url: agent.url, capabilities, a2a: { wire: '1.0' } }
  await register(gateway.http, card)
  const client = await CONNECT['0.3'](gatewayUrl(gateway.http, 'eager'))
  const stream = client.stream({ parts: [{ text: 'go' }] })[Symbol.asyncIterator]()
  await stream.next()
  let last = -1
  await expect.poll(() => last === (last = written), { ...PATIENT, interval: 500 }).toBe(true)
  expect(written).toBeLessThan(count)
  const seen: unknown[] = []
  for (let next = await stream.next(); next.done !== true; next = await stream.next()) {
    seen.push((next.value.view as { artifact?: { artifactId: string } }).artifact?.artifactId)
  }
  // A stream of 0.3 need not begin with a task, so the first event was the first part.
  expect(seen).toEqual(Array.from({ length: count - 1 }, (_, n) => `${n + 1}`))
})
