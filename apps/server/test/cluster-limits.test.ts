import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { testFolder } from '@signalbox/testkit/test-folder'
import { openReceiver } from '@signalbox/testkit/webhook-receiver'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { RunningServer } from '../src/server.ts'
import { callTool } from './support/mcp.ts'
import { metric, PATIENT, serveNodes } from './support/nodes.ts'
import { taskRequest } from './support/tasks.ts'
import { issuer } from './support/tokens.ts'

const LIMIT = 5
/** The requests that reach each node at the same moment. */
const BURST = 8

/** A request to create something; resolves with whether it was created. */
type Create = (http: string, name: string) => Promise<boolean>

async function post(url: string, body: object, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  await response.text()
  return response.status
}

/** Takes all places but one, and then sends bursts to both nodes at once; resolves with the number of places taken. */
async function raceForLast(
  nodes: readonly RunningServer[],
  create: Create,
  known: (node: RunningServer) => Promise<number>,
): Promise<number> {
  const [first] = nodes
  for (let index = 1; index < LIMIT; index++) expect(await create(first?.http.url ?? '', `early-${index}`)).toBe(true)
  for (const node of nodes) await expect.poll(() => known(node), PATIENT).toBe(LIMIT - 1)
  const burst = Array.from({ length: BURST }, (_, index) =>
    nodes.map(({ http }, node) => create(http.url, `late-${node}-${index}`)),
  ).flat()
  return LIMIT - 1 + (await Promise.all(burst)).filter(Boolean).length
}

async function get(url: string, headers: Record<string, string> = {}): Promise<unknown[]> {
  return (await (await fetch(url, { headers })).json()) as unknown[]
}

const createChannel: Create = async (http, name) => {
  const { isError } = await callTool(http, 'queue_send', { channel: name, body: 'x' })
  return !isError
}

function createAgentAs(headers: Record<string, string>): Create {
  return async (http, name) =>
    (await post(`${http}/agents/register`, { agent_id: name, name, url: 'http://127.0.0.1:9/' }, headers)) === 200
}

const createStream: Create = async (http) => {
  const controller = new AbortController()
  onTestFinished(() => controller.abort())
  const { status } = await fetch(`${http}/ce/subscribe/events?channel=orders`, {
    headers: { accept: 'text/event-stream' },
    signal: controller.signal,
  })
  return status === 200
}

/** Waits until no node creates one more. */
async function untilFull(nodes: readonly RunningServer[], create: Create): Promise<void> {
  for (const { http } of nodes) await expect.poll(() => create(http.url, 'one-more'), PATIENT).toBe(false)
}

describe.skipIf(NATS_SERVER === undefined)('limits over two nodes', () => {
  test('limits - two nodes exceed MAX_CHANNELS by one channel at most', { timeout: 60_000 }, async () => {
    const nodes = await serveNodes(2, { maxChannels: LIMIT })
    const taken = await raceForLast(nodes, createChannel, ({ api }) => metric(api.url, 'broker_channels'))
    expect([LIMIT, LIMIT + 1]).toContain(taken)
    await untilFull(nodes, createChannel)
  })

  test('limits - a caller owns one agent too many at most, with two nodes', { timeout: 60_000 }, async () => {
    const { pem, bearer } = issuer()
    const keyFile = join(testFolder(), 'key.pem')
    writeFileSync(keyFile, pem)
    const authentication = { enable: true, keyFile }
    const nodes = await serveNodes(2, { authentication, limits: { caller: { agents: LIMIT } } })
    const headers = { authorization: await bearer('owner') }
    const create = createAgentAs(headers)
    const taken = await raceForLast(
      nodes,
      create,
      async ({ http }) => (await get(`${http.url}/agents`, headers)).length,
    )
    expect([LIMIT, LIMIT + 1]).toContain(taken)
    await untilFull(nodes, create)
  })

  test('limits - a caller has one webhook too many at most, with two nodes', { timeout: 60_000 }, async () => {
    const keyFile = join(testFolder(), 'webhooks.key')
    const nodes = await serveNodes(2, { webhooks: { enable: true, keyFile, allow: ['127.0.0.1'], maxPerOwner: LIMIT } })
    const { url: sink } = await openReceiver()
    const create: Create = async (http) =>
      (await post(`${http}/ce/subscriptions`, { sink, config: { channel: 'orders' } })) === 201
    const taken = await raceForLast(
      nodes,
      create,
      async ({ http }) => (await get(`${http.url}/ce/subscriptions`)).length,
    )
    expect([LIMIT, LIMIT + 1]).toContain(taken)
    await untilFull(nodes, create)
  })

  test('limits - a caller has one task too many at most, with two nodes', { timeout: 60_000 }, async () => {
    const nodes = await serveNodes(2, { connectors: { mcp: { tasks: { afterMs: 1, max: LIMIT } } } })
    const responder = nodes[0]?.broker.as({ clientId: 'responder' }).commands
    const subscription = await responder?.subscribe('do', {}, () => new Promise(() => {}))
    onTestFinished(() => subscription?.close())
    const args = { channel: 'do', body: 'x', timeout_seconds: 5 }
    const ids: string[] = []
    const create: Create = async (http) => {
      const { result } = await taskRequest(http, 'tools/call', { name: 'command_send', arguments: args })
      if (result?.resultType !== 'task') return false
      ids.push(result.taskId)
      return true
    }
    const known = async ({ http }: RunningServer): Promise<number> => {
      const answers = await Promise.all(ids.map((taskId) => taskRequest(http.url, 'tasks/get', { taskId })))
      return answers.filter(({ error }) => error === undefined).length
    }
    const taken = await raceForLast(nodes, create, known)
    expect([LIMIT, LIMIT + 1]).toContain(taken)
  })

  test('limits - streams count on each node', { timeout: 60_000 }, async () => {
    const nodes = await serveNodes(2, { limits: { process: { streams: LIMIT } } })
    for (const { http } of nodes) {
      const opened = await Promise.all(Array.from({ length: LIMIT + 2 }, () => createStream(http.url, '')))
      expect(opened.filter(Boolean)).toHaveLength(LIMIT)
    }
  })
})
