import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { testFolder } from '@signalbox/testkit/test-folder'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'

import type { PartialConfig } from '../../src/config/load.ts'
import { postJson } from '../support/agent.ts'
import { callTool } from '../support/mcp.ts'
import { serve } from '../support/server.ts'
import { issuer, trusting } from '../support/tokens.ts'
import type { AgentName, OfficialAgents } from './agents/process.ts'
import { startOfficialAgents } from './agents/process.ts'
import { AUTHENTICATED } from './clients/authenticated.ts'
import type { OfficialClient } from './clients/client.ts'
import { gatewayUrl } from './gateway.ts'
import { outcome } from './view.ts'

const one = issuer()
const ADMIN = { roles: ['Admin'] }
const AGENTS = ['v10', 'v03'] as const satisfies readonly AgentName[]
const KINDS = ['1.0', '1.0 over HTTP+JSON', '0.3'] as const

let agents: OfficialAgents
beforeAll(async () => {
  agents = await startOfficialAgents()
})
afterAll(() => agents[Symbol.dispose]())

/** Starts a server with authentication, at which the caller `owner` has registered the agents. */
async function serveAgents(partial: PartialConfig = {}): Promise<string> {
  const { http } = await serve({ ...trusting(one), ...partial })
  const authorization = await one.bearer('owner')
  for (const agent of AGENTS) {
    const url = agents.url(agent)
    const card = (await (await fetch(`${url}.well-known/agent-card.json`)).json()) as object
    const { status } = await postJson(
      `${http.url}/agents/register`,
      { ...card, agent_id: agent, url },
      { authorization },
    )
    expect(status).toBe(200)
  }
  return http.url
}

const isolation = (taskIsolation: 'strict' | 'off'): PartialConfig => ({ connectors: { a2a: { taskIsolation } } })

function as(
  clientId: string,
  base: string,
  agent: AgentName,
  kind: (typeof KINDS)[number] = '1.0',
  claims = {},
): Promise<OfficialClient> {
  return AUTHENTICATED[kind](gatewayUrl(base, agent), () => one.bearer(clientId, claims))
}

/** Returns what a caller of the gateway's own dialect gets. */
async function dialect(
  base: string,
  clientId: string,
  agent: AgentName,
  method: string,
  params: object,
): Promise<unknown> {
  const body = { jsonrpc: '2.0', id: 1, method, params }
  const response = await postJson(`${base}/a2a/${agent}`, body, { authorization: await one.bearer(clientId) })
  return response.json()
}

const HOLD = { parts: [{ text: 'hold' }], immediately: true }
const WORK = { parts: [{ text: 'work' }] }
const NOT_FOUND = /not found/i

const first = (stream: AsyncIterable<unknown>): Promise<unknown> => stream[Symbol.asyncIterator]().next()

/** Resolves with the outcomes of all that a client can do with a task, one text for each. */
async function attempts(client: OfficialClient, taskId: string): Promise<readonly string[]> {
  const calls = {
    get: client.get(taskId),
    cancel: client.cancel(taskId),
    subscribe: first(client.resubscribe(taskId)),
    followUp: client.send({ ...WORK, taskId }),
    streamedFollowUp: first(client.stream({ ...WORK, taskId })),
    reference: client.send({ ...WORK, referenceTaskIds: [taskId] }),
  }
  const outcomes = Object.entries(calls).map(async ([name, call]) => JSON.stringify([name, await outcome(call)]))
  return Promise.all(outcomes)
}

const HIDDEN = Array.from({ length: 6 }, () => expect.stringMatching(NOT_FOUND))

/** Returns the addresses of two nodes, which are one on the embedded engine. */
async function nodes(engine: 'embedded' | 'nats'): Promise<readonly [string, string]> {
  if (engine === 'embedded') {
    const base = await serveAgents()
    return [base, base]
  }
  const nats = await NatsServer.start()
  onTestFinished(() => nats[Symbol.asyncDispose]())
  const cluster: PartialConfig = { engine: 'nats', nats: { servers: [nats.url] } }
  const here = await serveAgents(cluster)
  const { http } = await serve({ ...trusting(one), ...cluster })
  return [here, http.url]
}

const ENGINES = NATS_SERVER === undefined ? (['embedded'] as const) : (['embedded', 'nats'] as const)

test.each(ENGINES)(
  'A40 - isolation: nobody but its caller, the owner of the agent and an Admin reads or cancels a task (%s)',
  async (engine) => {
    const [here, there] = await nodes(engine)
    for (const agent of AGENTS) {
      for (const kind of KINDS) {
        const alice = await as('alice', here, agent, kind)
        const { taskId } = await alice.send(HOLD)
        expect(await attempts(await as('bob', there, agent, kind), taskId)).toEqual(HIDDEN)
        expect(await (await as('alice', there, agent, kind)).get(taskId)).toMatchObject({ taskId })
        for (const reader of [await as('owner', there, agent, kind), await as('root', there, agent, kind, ADMIN)]) {
          expect(await reader.get(taskId)).toMatchObject({ taskId })
          // They read and cancel, and say nothing in the caller's name.
          expect(JSON.stringify(await outcome(reader.send({ ...WORK, taskId })))).toMatch(NOT_FOUND)
        }
        const canceled = await (await as('root', here, agent, kind, ADMIN)).cancel(taskId)
        expect(JSON.stringify(canceled.view)).toMatch(/canceled/i)

        // The record is there as soon as the first event shows the id.
        const stream = alice.stream(HOLD)[Symbol.asyncIterator]()
        const streamed = ((await stream.next()).value as { readonly taskId: string }).taskId
        expect(await attempts(await as('bob', there, agent, kind), streamed)).toEqual(HIDDEN)
        await alice.cancel(streamed)
        await stream.return?.()
      }
    }
  },
)

function shownIds(list: unknown): ReadonlySet<string> {
  return new Set((list as { tasks: readonly { id: string }[] }).tasks.map(({ id }) => id))
}

async function authorization(clientId: string): Promise<{ authorization: string }> {
  return { authorization: await one.bearer(clientId) }
}

test('A40 - isolation: a list contains and counts only tasks of its caller', async () => {
  const base = await serveAgents()
  const contextId = crypto.randomUUID()
  const [alice, bob, owner] = await Promise.all(['alice', 'bob', 'owner'].map((id) => as(id, base, 'v10')))
  const begun = await Promise.all([alice, alice, bob].map((client) => client!.send({ ...WORK, contextId })))
  const [first, second, third] = begun.map(({ taskId }) => taskId)
  const lists = await Promise.all([alice, bob, owner].map((client) => client!.list(contextId)))
  expect(lists.map(shownIds)).toEqual([new Set([first, second]), new Set([third]), new Set([first, second, third])])
  expect(lists.map((list) => (list as { totalSize: number }).totalSize)).toEqual([2, 1, 3])
})

test("A40 - isolation: in the dialect and for tools another caller's task is a task that does not exist", async () => {
  const base = await serveAgents()
  for (const agent of AGENTS) {
    const { text } = await callTool(
      base,
      'agent_send',
      { agent_id: agent, message: 'work' },
      await authorization('alice'),
    )
    const sent = JSON.parse(text) as { readonly id?: string; readonly task?: { readonly id: string } }
    const id = sent.task?.id ?? sent.id ?? ''
    const query = async (clientId: string) =>
      callTool(
        base,
        'agent_query',
        { agent_id: agent, method: 'tasks/get', params: { id } },
        await authorization(clientId),
      )
    expect(await query('alice')).toMatchObject({ isError: false })
    expect(await query('bob')).toMatchObject({ isError: true, text: expect.stringContaining('-32001') })
    const message = `Task not found: ${id}`
    for (const [method, params] of [
      ['tasks/get', { id }],
      ['tasks/get', { id: 'mine', ID: id }],
      ['message/send', { message: { messageId: 'm', role: 'user', parts: [], task_id: id } }],
      ['message/stream', { message: { messageId: 'm', role: 'user', parts: [], taskId: id } }],
      ['tasks/any', { id }],
      ['custom', { taskId: id }],
    ] as const) {
      const answer = await dialect(base, 'bob', agent, method, params)
      expect([method, answer]).toEqual([method, { jsonrpc: '2.0', id: 1, error: { code: -32001, message } }])
    }
  }
})

test('A40 - isolation: records outlive a restart; strict hides tasks without a record, off shares all', async () => {
  const store = { path: testFolder() }
  const first = await serve({ ...trusting(one), store })
  const card = { agent_id: 'v10', name: 'v10', url: agents.url('v10'), a2a: { wire: '1.0' } }
  const authorization = await one.bearer('owner')
  await postJson(`${first.http.url}/agents/register`, card, { authorization })
  const { taskId } = await (await as('alice', first.http.url, 'v10')).send(WORK)
  await first.close()
  const second = await serve({ ...trusting(one), store })
  expect(await attempts(await as('bob', second.http.url, 'v10'), taskId)).toEqual(HIDDEN)
  expect(await (await as('alice', second.http.url, 'v10')).get(taskId)).toMatchObject({ taskId })
  await second.close()

  const [open, strict, off] = await Promise.all([
    serveAgents(),
    serveAgents(isolation('strict')),
    serveAgents(isolation('off')),
  ])
  // These servers have no record of the task.
  expect(await (await as('bob', open, 'v10')).get(taskId)).toMatchObject({ taskId })
  await agents.takeSeen()
  for (const clientId of ['alice', 'bob'])
    expect(await attempts(await as(clientId, strict, 'v10'), taskId)).toEqual(HIDDEN)
  expect(await agents.takeSeen()).toEqual([])
  expect(await (await as('owner', strict, 'v10')).get(taskId)).toMatchObject({ taskId })
  const shared = await (await as('alice', off, 'v10')).send(WORK)
  expect(await (await as('bob', off, 'v10')).get(shared.taskId)).toMatchObject({ taskId: shared.taskId })
})
