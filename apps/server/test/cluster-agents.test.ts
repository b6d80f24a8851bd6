import { once } from 'node:events'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import type { BareAgent } from './support/agent.ts'
import { callAgent, listed, postJson, register, startAgent, withResult } from './support/agent.ts'
import { callTool } from './support/mcp.ts'
import { metric, PATIENT, serveNode, serveNodes, startFront, startNats } from './support/nodes.ts'
import { addresses, DONE, inFlight, openAcross, STATUS } from './support/streams-across.ts'
import type { Addresses } from './support/streams-across.ts'

function cardOf(id: string, agent: BareAgent | string): object {
  return { agent_id: id, name: id, url: typeof agent === 'string' ? agent : agent.url }
}

const NOWHERE = 'http://127.0.0.1:1/'

async function heartbeat(base: string, id: string): Promise<number> {
  return (await postJson(`${base}/agents/heartbeat`, { agent_id: id })).status
}

describe.skipIf(NATS_SERVER === undefined)('agents across nodes', () => {
  test('CL-12, STATE-1 - an agent that registers at one node is at every surface of all nodes, until it deregisters', async () => {
    const nodes = await serveNodes(3)
    const [one, two, three] = nodes.map(({ http }) => http.url) as [string, string, string]
    const agent = await startAgent(withResult('yes'))
    const card = await register(one, cardOf('echo', agent))
    for (const base of [one, two, three]) {
      await expect.poll(() => listed(base), PATIENT).toEqual(['echo'])
      expect(await (await fetch(`${base}/agents/echo`)).json()).toEqual(card)
      expect(await (await fetch(`${base}/a2a/echo/.well-known/agent-card.json`)).json()).toMatchObject({
        ...card,
        url: `${base}/a2a/echo/v0.3`,
      })
      expect(await callAgent(base, 'echo', 'message/send')).toEqual({ jsonrpc: '2.0', id: 1, result: 'yes' })
      expect((await callTool(base, 'agent_send', { agent_id: 'echo', message: 'hello' })).text).toBe('"yes"')
    }
    expect((await fetch(`${two}/agents/echo`, { method: 'DELETE' })).ok).toBe(true)
    for (const base of [one, two, three]) {
      await expect.poll(() => listed(base), PATIENT).toEqual([])
      expect(await callAgent(base, 'echo', 'message/send')).toMatchObject({ error: { code: -32002 } })
    }
  })

  test('CL-12 - every node sees a registration, and the going of an agent, within a second', async () => {
    const bases = (await serveNodes(3)).map(({ http }) => http.url)
    const took = { coming: [] as number[], going: [] as number[] }
    const everywhere = async (ids: readonly string[]): Promise<void> => {
      const expected = bases.map(() => ids)
      await expect.poll(() => Promise.all(bases.map(listed)), { ...PATIENT, interval: 10 }).toEqual(expected)
    }
    for (let i = 0; i < 9; i++) {
      let began = performance.now()
      await register(bases[i % 3]!, cardOf('seen', NOWHERE))
      await everywhere(['seen'])
      took.coming.push(performance.now() - began)
      began = performance.now()
      await fetch(`${bases[(i + 1) % 3]!}/agents/seen`, { method: 'DELETE' })
      await everywhere([])
      took.going.push(performance.now() - began)
    }
    // Medians: a machine that stands still for a moment is not what is asked about.
    for (const times of [took.coming, took.going]) {
      expect(times.toSorted((a, b) => a - b)[4]).toBeLessThan(1_000)
    }
  })

  test('R9, CL-11 - an agent that registers through a balancer can be called at once, at any node', async () => {
    const front = await startFront(await serveNodes(3))
    const agent = await startAgent(withResult('there'))
    for (let i = 0; i < 8; i++) {
      await register(front, cardOf(`a${i}`, agent))
      expect(await callAgent(front, `a${i}`, 'message/send')).toMatchObject({ result: 'there' })
    }
  })

  test('R5, R6, CL-12 - a heartbeat at any node keeps an agent everywhere; silence removes it everywhere, once', async () => {
    const nodes = await serveNodes(2, { connectors: { a2a: { agentTtlSeconds: 3 } } })
    const bases = nodes.map(({ http }) => http.url)
    await register(bases[0]!, cardOf('kept', NOWHERE))
    await register(bases[1]!, cardOf('silent', NOWHERE))
    for (const base of bases) await expect.poll(() => listed(base), PATIENT).toEqual(['kept', 'silent'])
    let beats = 0
    const beat = async (): Promise<readonly (readonly string[])[]> => {
      expect(await heartbeat(bases[beats++ % 2]!, 'kept')).toBe(200)
      return Promise.all(bases.map(listed))
    }
    // It registered before the other one, so it would be gone too without the heartbeats at both nodes.
    await expect.poll(beat, { ...PATIENT, interval: 100 }).toEqual([['kept'], ['kept']])
    expect(beats).toBeGreaterThan(2)
    for (const base of bases) await expect.poll(() => listed(base), PATIENT).toEqual([])
    const series = 'broker_a2a_registry_operations_total{op="expire",status="success"}'
    const expired = async (): Promise<number> => {
      const counts = await Promise.all(nodes.map(({ api }) => metric(api.url, series)))
      return counts.reduce((sum, count) => sum + count, 0)
    }
    await expect.poll(expired, PATIENT).toBe(2)
  })

  test('R7, CL-12 - MaxAgents holds over nodes, also when they register at the same time', async () => {
    const nodes = await serveNodes(3, { connectors: { a2a: { maxAgents: 4 } } })
    const statuses = await Promise.all(
      Array.from({ length: 12 }, async (_, i) => {
        const { http } = nodes[i % 3]!
        return (await postJson(`${http.url}/agents/register`, cardOf(`a${i}`, NOWHERE))).status
      }),
    )
    // The statuses themselves, so that a failure tells which ones came instead.
    expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array(4).fill(200), ...Array(8).fill(409)])
    const kept = statuses.flatMap((status, i) => (status === 200 ? [`a${i}`] : [])).toSorted()
    for (const { http } of nodes) await expect.poll(() => listed(http.url), PATIENT).toEqual(kept)
  })

  test('R6, CL-12 - a node that joins later knows every agent when it is ready, and reads a history as long as the number of agents', async () => {
    const nats = await startNats()
    const one = await serveNode(nats)
    const ids = Array.from({ length: 10 }, (_, i) => `a${i}`)
    for (let round = 0; round < 5; round++) {
      await Promise.all(ids.map((id) => register(one.http.url, { ...cardOf(id, NOWHERE), description: `${round}` })))
    }
    await Promise.all(ids.slice(5).map((id) => fetch(`${one.http.url}/agents/${id}`, { method: 'DELETE' })))
    const late = await serveNode(nats)
    expect(await listed(late.http.url)).toEqual(ids.slice(0, 5))
    expect(await (await fetch(`${late.http.url}/agents/a0`)).json()).toMatchObject({ description: '4' })
    const page = await (await fetch(`${late.api.url}/ready`)).json()
    expect(page).toMatchObject({ ready: true })
  })

  test('R9 - AgentMaxConcurrency applies to each serving node: two nodes have two calls in flight and refuse the next', async () => {
    const nodes = await serveNodes(2, { connectors: { a2a: { agentMaxConcurrency: 1 } } })
    const answering = Promise.withResolvers<void>()
    onTestFinished(() => answering.resolve())
    const agent = await startAgent(async (asked, response) => {
      await answering.promise
      await withResult('at last')(asked, response)
    })
    await register(nodes[0]!.http.url, cardOf('slow', agent))
    for (const { http } of nodes) await expect.poll(() => listed(http.url), PATIENT).toEqual(['slow'])
    const refused: unknown[] = []
    const call = async (): Promise<void> => {
      const answer = await callAgent(nodes[0]!.http.url, 'slow', 'message/send')
      if (JSON.stringify(answer).includes('server busy')) refused.push(answer)
    }
    const calls: Promise<void>[] = []
    await expect
      .poll(
        () => {
          calls.push(call())
          return agent.asked.length
        },
        { ...PATIENT, interval: 50 },
      )
      .toBe(2)
    const known = refused.length
    calls.push(call(), call())
    await expect.poll(() => refused.length, PATIENT).toBeGreaterThanOrEqual(known + 2)
    const underWay = () => Promise.all(nodes.map(({ api }) => inFlight(api.url, 'slow')))
    await expect.poll(underWay, PATIENT).toEqual([1, 1])
    expect(agent.asked).toHaveLength(2)
    answering.resolve()
    await Promise.all(calls)
  })

  test('A10, A11, CL-15 - a stream that another node serves: whole, in order, and cancelled through any node', async () => {
    const nodes = await serveNodes(2)
    const [one, two] = nodes.map(addresses) as [Addresses, Addresses]
    const go = Promise.withResolvers<void>()
    const agent = await startAgent(async ({ method }, response) => {
      if (method === 'stream_cancel') {
        response.writeHead(204).end()
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(STATUS)
      await go.promise
      for (let n = 0; n < 500; n++)
        response.write(`event: task.artifact\ndata: {"type":"artifact","payload":{"n":${n}}}\n\n`)
      if (!response.destroyed) response.write(STATUS)
    })
    await register(one.http, cardOf('streaming', agent))
    await expect.poll(() => listed(two.http), PATIENT).toEqual(['streaming'])
    const stream = await openAcross(one, two, 'streaming')
    go.resolve()
    await vi.waitFor(() => expect(stream.seen).toHaveLength(502), PATIENT)
    expect(stream.seen.slice(1, 501).map(({ json }) => json.payload?.n)).toEqual(
      Array.from({ length: 500 }, (_, n) => n),
    )
    const { stream_id } = (await stream.next()).json
    const before = agent.gone.length
    // The agent runs at node two; the cancel is sent at both, and one of them is not the one that runs it.
    for (const { http } of [one, two]) {
      await postJson(`${http}/a2a/streaming`, { jsonrpc: '2.0', method: 'stream_cancel', params: { stream_id } })
    }
    await expect.poll(() => agent.gone.length, PATIENT).toBe(before + 1)
    await stream.ended
    for (const { api } of [one, two]) await expect.poll(() => inFlight(api, 'streaming'), PATIENT).toBe(0)

    const left = await openAcross(one, two, 'streaming')
    left.close()
    await expect.poll(() => agent.gone.length, PATIENT).toBeGreaterThan(before + 1)
    for (const { api } of [one, two]) await expect.poll(() => inFlight(api, 'streaming'), PATIENT).toBe(0)
  })

  test('A11, CL-15 - a client that reads nothing holds back an agent that another node serves, and misses nothing', async () => {
    const nodes = await serveNodes(2)
    const [one, two] = nodes.map(addresses) as [Addresses, Addresses]
    const text = 'x'.repeat(10_000)
    const events = 3_000
    let written = 0
    const agent = await startAgent(async ({ method }, response) => {
      if (method === 'stream_cancel') {
        response.writeHead(204).end()
        return
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      written = 0
      const closed = once(response, 'close')
      response.write(STATUS)
      for (let n = 0; n < events && !response.destroyed; n++) {
        const event = `event: task.artifact\ndata: {"type":"artifact","payload":{"n":${n},"text":"${text}"}}\n\n`
        if (!response.write(event)) {
          await Promise.race([once(response, 'drain'), closed])
        }
        written++
      }
      response.end(DONE)
    })
    await register(one.http, cardOf('eager', agent))
    await expect.poll(() => listed(two.http), PATIENT).toEqual(['eager'])
    const stream = await openAcross(one, two, 'eager', { paused: true })
    // It has come to a halt when it wrote nothing more for a while.
    let last = -1
    await expect.poll(() => last === (last = written), { ...PATIENT, interval: 700 }).toBe(true)
    expect(written).toBeGreaterThan(0)
    expect(written).toBeLessThan(events)
    stream.resume()
    await stream.ended
    expect(written).toBe(events)
    expect(stream.seen.at(-1)?.event).toBe('task.done')
    const numbers = stream.seen.flatMap(({ json }) => (json.type === 'artifact' ? [json.payload?.n] : []))
    expect(numbers).toEqual(Array.from({ length: events }, (_, n) => n))
  })
})
