import { once } from 'node:events'
import { connect, createServer } from 'node:net'

import { freePort } from '@signalbox/testkit/free-port'
import { until } from '@signalbox/testkit/until'
import { describe, expect, onTestFinished, test } from 'vitest'

import { register } from '../support/agent.ts'
import type { AgentName, OfficialAgents } from './agents/process.ts'
import type { OfficialClient } from './clients/client.ts'
import type { ClientName } from './clients/connect.ts'
import { CONNECT } from './clients/connect.ts'
import { CONVERSATIONS } from './conversations.ts'
import type { Gateway } from './gateway.ts'
import { beforeOfficial, gatewayUrl } from './gateway.ts'
import { hasReference, improved, reference } from './reference.ts'
import { comparable } from './view.ts'

const CLIENTS = ['1.0', 'rest', '0.3'] as const satisfies readonly ClientName[]

let agents: OfficialAgents
let gateway: Gateway
beforeOfficial(async (started) => {
  ;({ agents, gateway } = started)
  await register(gateway.http, { agent_id: 'puller', name: 'puller', a2a: { pull: true } })
})

/** Registers an official agent under another name, with these options. */
async function registerAs(name: string, agent: AgentName, a2a: object, url = agents.url(agent)): Promise<void> {
  const response = await fetch(`${agents.url(agent)}.well-known/agent-card.json`)
  const card = (await response.json()) as object
  await register(gateway.http, { ...card, agent_id: name, url, supportedInterfaces: undefined, a2a })
}

/** Calls the inbox of the pull agent. */
async function inbox(route: string, body: object): Promise<unknown> {
  const response = await fetch(`${gateway.http}/agents/puller/inbox/${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return response.json()
}

async function lease(): Promise<{ readonly receipt: string; readonly task_id: string }> {
  const { items } = (await inbox('lease', { wait_seconds: 10 })) as { items: { receipt: string; task_id: string }[] }
  const [item] = items
  if (item === undefined) throw new Error('nothing was leased')
  return item
}

function write(receipt: string, offset: number, ...events: readonly object[]): Promise<unknown> {
  return inbox('events', { receipt, offset, events })
}

const status = (state: string): object => ({ statusUpdate: { status: { state: `TASK_STATE_${state}` } } })
const artifact = { artifactUpdate: { artifact: { artifactId: 'a', parts: [{ text: 'made' }] } } }
const HELLO = { parts: [{ text: 'hello' }] }

/** The state in a task or a status, in either version of A2A. */
function stateIn(view: unknown): string {
  return (
    /"state":"(?:TASK_STATE_)?([A-Za-z_-]+)"/.exec(JSON.stringify(view))?.[1]?.toLowerCase().replaceAll('_', '-') ?? ''
  )
}

describe.each(CLIENTS)('client %s and a pull agent', (name) => {
  const connected = (): Promise<OfficialClient> => CONNECT[name](gatewayUrl(gateway.http, 'puller'))

  test('official clients - a message waits for the answer of a lessee; later the task is read and listed', async () => {
    const client = await connected()
    const leased = lease()
    const sent = client.send(HELLO)
    const { receipt, task_id: taskId } = await leased
    await write(receipt, 0, status('WORKING'), artifact, status('COMPLETED'))
    const result = await sent
    expect([result.taskId, stateIn(result.view)]).toEqual([taskId, 'completed'])
    expect(JSON.stringify(result.view)).toContain('made')
    expect(stateIn((await client.get(taskId)).view)).toBe('completed')
  })

  test('official clients - a stream, and a subscription beside it, have the events of the lessee', async () => {
    const client = await connected()
    const leased = lease()
    const stream = client.stream(HELLO)[Symbol.asyncIterator]()
    const first = await stream.next()
    const { receipt, task_id: taskId } = await leased
    expect(first.value).toMatchObject({ taskId })
    await write(receipt, 0, status('WORKING'))
    const subscription = client.resubscribe(taskId)[Symbol.asyncIterator]()
    expect(stateIn((await subscription.next()).value)).toBe('working')
    await write(receipt, 1, artifact, status('COMPLETED'))
    const rest = await Promise.all([stream, subscription].map(remaining))
    expect(rest.map((events) => events.map(stateIn).findLast((state) => state !== ''))).toEqual([
      'completed',
      'completed',
    ])
    expect(JSON.stringify(rest[1])).toContain('made')
  })

  test('official clients - a task that asks for input goes on with the next message', async () => {
    const client = await connected()
    const leased = lease()
    const sent = client.send(HELLO)
    const first = await leased
    await write(first.receipt, 0, status('INPUT_REQUIRED'))
    const asked = await sent
    expect(stateIn(asked.view)).toBe('input-required')
    const again = lease()
    const continued = client.send({ parts: [{ text: 'more' }], taskId: asked.taskId })
    const second = await again
    expect(second.task_id).toBe(asked.taskId)
    await write(second.receipt, 0, status('COMPLETED'))
    expect(stateIn((await continued).view)).toBe('completed')
  })

  test('official clients - a task is canceled by its lessee, who is asked to', async () => {
    const client = await connected()
    const leased = lease()
    const { taskId } = await client.send({ ...HELLO, immediately: true })
    const { receipt } = await leased
    await write(receipt, 0, status('WORKING'))
    await client.cancel(taskId)
    expect(await write(receipt, 1)).toMatchObject({ cancel_requested: true })
    await write(receipt, 1, status('CANCELED'))
    expect(stateIn((await client.get(taskId)).view)).toBe('canceled')
  })
})

async function remaining(iterator: AsyncIterator<unknown>): Promise<readonly unknown[]> {
  const rest: unknown[] = []
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) rest.push(next.value)
  return rest
}

test.each(CLIENTS)(
  'official clients - client %s and an agent that is off: sent now, answered when it is back',
  async (name) => {
    const port = await freePort()
    const id = `away-${name.replace('.', '')}`
    await registerAs(id, 'v10', { wire: '1.0', offline: 'queue' }, `http://127.0.0.1:${port}/v10/`)
    const client = await CONNECT[name](gatewayUrl(gateway.http, id))
    const { taskId, view } = await client.send({ parts: [{ text: 'work' }] })
    expect(stateIn(view)).toBe('submitted')
    const stream = client.resubscribe(taskId)[Symbol.asyncIterator]()
    expect(stateIn((await stream.next()).value)).toBe('submitted')
    await forward(port, Number(new URL(agents.url('v10')).port))
    const events = await remaining(stream)
    expect(events.map(stateIn).findLast((state) => state !== '')).toBe('completed')
    await until(async () => stateIn((await client.get(taskId)).view) === 'completed')
  },
)

/** Forwards the connections of a port. */
async function forward(port: number, to: number): Promise<void> {
  const server = createServer((socket) => {
    const outgoing = connect(to, '127.0.0.1')
    socket.on('error', () => outgoing.destroy()).pipe(outgoing)
    outgoing.on('error', () => socket.destroy()).pipe(socket)
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
}

describe.each([
  ['1.0', 'v10'],
  ['rest', 'v10'],
  ['0.3', 'v10'],
  ['1.0', 'v03'],
] as const satisfies readonly (readonly [ClientName, AgentName])[])(
  'client %s and the durable agent %s',
  (client, agent) => {
    const held = CONVERSATIONS.filter((conversation) => hasReference(client, agent, conversation))
    test.each(held)('official clients - the same as without a log: $name', async (conversation) => {
      const [byClient, ofAgent] = reference(client, agent, conversation)
      const id = `durable-${agent}`
      await registerAs(id, agent, { wire: agent === 'v10' ? '1.0' : '0.3', durable: true })
      const direct = await conversation.hold(await CONNECT[byClient](agents.url(ofAgent)), agents)
      const expected = improved(client, agent, conversation, comparable(direct))
      const through = await conversation.hold(await CONNECT[client](gatewayUrl(gateway.http, id)), agents)
      expect(comparable(through)).toEqual(expected)
    })
  },
)
