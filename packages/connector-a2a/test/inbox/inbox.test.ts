import type { JsonObject } from '@signalbox/http-kit'
import type { AgentCard, AgentInbox, InboxItem } from '@signalbox/registry'
import { until } from '@signalbox/testkit/until'
import { describe, expect, test } from 'vitest'

import type { Answer, GatewayHost, HostOptions } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'
import { send, send03 } from '../runs/durable-host.ts'

const PULL = 'puller'
const V10 = { 'a2a-version': '1.0' }
const OWNER = { clientId: 'owner' }

interface PullHost {
  readonly host: GatewayHost
  readonly inbox: AgentInbox
  readonly card: () => AgentCard
}

async function openPull(queue: object = {}, options: HostOptions = {}): Promise<PullHost> {
  const host = await openGateway(options)
  await host.registry.register({ agent_id: PULL, name: 'p', a2a: { pull: true, queue } }, OWNER)
  const { inbox } = host.connector
  if (inbox === undefined) throw new Error('the gateway has no inboxes')
  const card = (): AgentCard => {
    const found = host.registry.get(PULL)
    if (found === undefined) throw new Error('the agent is not registered')
    return found
  }
  return { host, inbox, card }
}

async function lease({ inbox, card }: PullHost, waitMs = 5_000, leaseMs = 60_000): Promise<InboxItem> {
  const { signal } = new AbortController()
  const [item] = await inbox.lease(card(), { max: 1, waitMs, leaseMs, signal })
  if (item === undefined) throw new Error('nothing was leased')
  return item
}

function status(state: string): JsonObject {
  return { statusUpdate: { status: { state: `TASK_STATE_${state}` } } }
}

function artifact(text: string): JsonObject {
  return { artifactUpdate: { artifact: { artifactId: 'a', parts: [{ text }] }, append: true } }
}

interface ReadTask {
  readonly id: string
  readonly status: {
    readonly state: string
    readonly message: { readonly parts: readonly { readonly text: string }[] }
  }
  readonly history: readonly { readonly messageId: string }[]
  readonly artifacts?: readonly { readonly parts: readonly { readonly text: string }[] }[]
  readonly metadata: object
}

/** The result of any method of these tests: a task, one in a member, or a list. */
type Result = ReadTask & { readonly task: ReadTask; readonly tasks: readonly ReadTask[]; readonly totalSize: number }

interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: readonly { readonly reason: string }[]
}

function rpc({ text }: Answer): { readonly result: Result; readonly error?: RpcError } {
  return JSON.parse(text) as { result: Result; error?: RpcError }
}

function ask(host: GatewayHost, method: string, params: object): Promise<Answer> {
  return host.post(PULL, { jsonrpc: '2.0', id: 1, method, params }, V10)
}

describe('agents that fetch their requests', () => {
  test('inbox - a send without a lessee is answered with the parked task; later a lessee does the work', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    const { result } = rpc(await host.post(PULL, send('hello', 'm1'), V10))
    const { id } = result.task
    expect(result.task).toMatchObject({
      status: { state: 'TASK_STATE_SUBMITTED' },
      metadata: { 'signalbox.delivery': { state: 'stored', position: 1 } },
    })
    expect(await inbox.status(card())).toMatchObject({ waiting: 1, inFlight: 0 })
    const item = await lease(pull)
    expect(item).toMatchObject({
      taskId: id,
      attempt: 1,
      request: { message: { parts: [{ text: 'hello' }], taskId: id } },
    })
    expect(rpc(await ask(host, 'GetTask', { id })).result.metadata).toEqual({
      'signalbox.delivery': { state: 'delivered', attempt: 1 },
    })
    const events = [status('WORKING'), artifact('one '), artifact('two'), status('COMPLETED')]
    const { receipt } = item
    expect(await inbox.events(card(), { receipt, offset: 0, events })).toMatchObject({
      accepted: 4,
      cancelRequested: false,
    })
    const done = rpc(await ask(host, 'GetTask', { id })).result
    expect(done).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ parts: [{ text: 'one ' }, { text: 'two' }] }],
      history: [{ role: 'ROLE_USER' }],
      metadata: { 'signalbox.delivery': { state: 'done' } },
    })
    expect(await inbox.status(card())).toMatchObject({ waiting: 0, inFlight: 0 })
    expect(rpc(await host.post(PULL, send('hello', 'm1'), V10)).result.task.status.state).toBe('TASK_STATE_COMPLETED')
  })

  test('inbox - a send that is repeated before a lessee comes gets the parked task again at once', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    const first = rpc(await host.post(PULL, send('hello', 'm1'), V10)).result.task
    const again = await host.post(PULL, send('hello', 'm1'), V10)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(rpc(again).result.task).toEqual(first)
    expect(await inbox.status(card())).toMatchObject({ waiting: 1 })
  })

  test('inbox - a blocking send waits for a lessee that was heard, in either version of A2A and in the dialect', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    for (const [i, request, headers] of [
      [1, send('hello', 'm1'), V10],
      [2, send03('hello', 'm2'), { 'a2a-version': '0.3' }],
      [3, send03('hello', 'm3'), {}],
    ] as const) {
      const leased = lease(pull)
      const answer = host.post(PULL, request, headers)
      const { receipt } = await leased
      await inbox.events(card(), { receipt, offset: 0, events: [status('WORKING')] })
      await inbox.events(card(), { receipt, offset: 1, events: [status('COMPLETED')] })
      const { result } = rpc(await answer)
      const task = i === 1 ? result.task : result
      expect(task.status.state).toBe(i === 1 ? 'TASK_STATE_COMPLETED' : 'completed')
    }
  })

  test('inbox - a shutdown answers blocking sends with their tasks as they are', async () => {
    const pull = await openPull({}, { timeouts: { defaultTimeoutMs: 600_000, maxTimeoutMs: 600_000 } })
    const { host } = pull
    const leased = lease(pull)
    const answer = host.post(PULL, send('hello', 'm1'), V10)
    const { taskId } = await leased
    await host.connector.close(60_000)
    const { result } = rpc(await answer)
    expect(result.task).toMatchObject({ id: taskId, status: { state: 'TASK_STATE_SUBMITTED' } })
  })

  test('inbox - a stream begins with the parked task, and has the events of the lessee as they are written', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    const response = host.post(PULL, send('hello', 'm1', 1, 'SendStreamingMessage'), V10)
    const { receipt } = await lease(pull)
    for (const [offset, event] of [status('WORKING'), artifact('x'), status('COMPLETED')].entries()) {
      await inbox.events(card(), { receipt, offset, events: [event] })
    }
    const { text } = await response
    const states = [...text.matchAll(/TASK_STATE_([A-Z]+)/g)].map(([, state]) => state)
    expect(states).toEqual(['SUBMITTED', 'WORKING', 'COMPLETED'])
    expect([...text.matchAll(/^id: .*\.(\d)$/gm)].map(([, n]) => n)).toEqual(['1', '2', '3', '4'])
  })

  test('inbox - a task that waits for its caller continues with the next message', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    const { id } = rpc(await host.post(PULL, send('hello', 'm1'), V10)).result.task
    const first = await lease(pull)
    await inbox.events(card(), { receipt: first.receipt, offset: 0, events: [status('INPUT_REQUIRED')] })
    expect(rpc(await ask(host, 'GetTask', { id })).result.status.state).toBe('TASK_STATE_INPUT_REQUIRED')
    const message = { messageId: 'm2', role: 'ROLE_USER', parts: [{ text: 'more' }], taskId: id }
    const answer = ask(host, 'SendMessage', { message })
    const second = await lease(pull)
    expect(second).toMatchObject({ taskId: id, attempt: 1, request: { message: { parts: [{ text: 'more' }] } } })
    await inbox.events(card(), { receipt: second.receipt, offset: 0, events: [status('COMPLETED')] })
    const { task } = rpc(await answer).result
    expect(task.status.state).toBe('TASK_STATE_COMPLETED')
    expect(task.history.map(({ messageId }) => messageId)).toEqual(['m1', 'm2'])
    expect(rpc(await ask(host, 'SendMessage', { message: { ...message, messageId: 'm3' } })).error).toMatchObject({
      code: -32004,
      message: expect.stringContaining('it is over'),
    })
  })

  test('inbox - a parked task is canceled at once; a lessee is asked to cancel', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    const first = rpc(await host.post(PULL, send('one', 'm1'), V10)).result.task.id
    const canceled = rpc(await ask(host, 'CancelTask', { id: first })).result
    expect(canceled.status.state).toBe('TASK_STATE_CANCELED')
    expect(rpc(await ask(host, 'CancelTask', { id: first })).error?.code).toBe(-32002)
    const second = rpc(await host.post(PULL, send('two', 'm2'), V10)).result.task.id
    const item = await lease(pull)
    expect(item.taskId).toBe(second)
    await ask(host, 'CancelTask', { id: second })
    const { receipt } = item
    expect(await inbox.events(card(), { receipt, offset: 0, events: [] })).toMatchObject({
      accepted: 0,
      cancelRequested: true,
    })
    await inbox.events(card(), { receipt, offset: 0, events: [status('CANCELED')] })
    expect(rpc(await ask(host, 'GetTask', { id: second })).result.status.state).toBe('TASK_STATE_CANCELED')
  })

  test('inbox - a repeated call changes nothing, and a call out of order says where to go on', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    await host.post(PULL, send('hello', 'm1'), V10)
    const { receipt } = await lease(pull)
    const events = [artifact('1'), artifact('2')]
    expect((await inbox.events(card(), { receipt, offset: 0, events })).accepted).toBe(2)
    expect((await inbox.events(card(), { receipt, offset: 0, events })).accepted).toBe(2)
    expect((await inbox.events(card(), { receipt, offset: 1, events: [artifact('2'), artifact('3')] })).accepted).toBe(
      3,
    )
    await expect(inbox.events(card(), { receipt, offset: 5, events })).rejects.toMatchObject({
      code: 'OFFSET_WRONG',
      message: expect.stringContaining('from 3 on'),
    })
    await inbox.events(card(), { receipt, offset: 3, events: [status('COMPLETED')] })
    expect((await inbox.events(card(), { receipt, offset: 3, events: [status('COMPLETED')] })).accepted).toBe(4)
    const list = rpc(await ask(host, 'ListTasks', { includeArtifacts: true })).result
    expect(list.totalSize).toBe(1)
    expect(list.tasks[0]?.artifacts?.[0]?.parts.map(({ text }) => text)).toEqual(['1', '2', '3'])
  })

  test('inbox - events that are not valid are refused, and nothing is written', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    await host.post(PULL, send('hello', 'm1'), V10)
    const { receipt, taskId } = await lease(pull)
    for (const [events, problem] of [
      [[{}], 'events[0] must be an object with one of "task", "statusUpdate", "artifactUpdate", "message"'],
      [
        [artifact('x'), { statusUpdate: { taskId: 'other', status: { state: 'TASK_STATE_WORKING' } } }],
        'it must be the id of the leased task',
      ],
      [[{ artifactUpdate: {} }], 'artifact'],
      [
        [{ statusUpdate: { status: { state: 'done' } } }],
        'events[0].statusUpdate.status.state is "done"; it must be one of TASK_STATE_SUBMITTED, TASK_STATE_WORKING,',
      ],
      [[{ task: {} }], 'events[0].task.status.state is absent'],
      [[status('COMPLETED'), artifact('x')], 'events[1] follows the event that ends the delivery'],
    ] as const) {
      await expect(inbox.events(card(), { receipt, offset: 0, events: [...events] as never })).rejects.toMatchObject({
        code: 'EVENT_INVALID',
        message: expect.stringContaining(problem),
      })
    }
    expect(rpc(await ask(host, 'GetTask', { id: taskId })).result.artifacts).toBeUndefined()
  })

  test('inbox - a message of the lessee completes the task, for its caller and for everyone who reads it', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    const { id } = rpc(await host.post(PULL, send('hello', 'm1'), V10)).result.task
    const { receipt } = await lease(pull)
    const events = [{ message: { messageId: 'a', parts: [{ text: 'hi' }] } }]
    await inbox.events(card(), { receipt, offset: 0, events })
    const done = { state: 'TASK_STATE_COMPLETED', message: { role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } }
    expect(rpc(await ask(host, 'GetTask', { id })).result.status).toMatchObject(done)
    expect(rpc(await host.post(PULL, send('hello', 'm1'), V10)).result.task.status).toMatchObject(done)
  })

  test('inbox - a lease that ended goes to the next lessee; the late events of the first are refused', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    await host.post(PULL, send('hello', 'm1'), V10)
    const first = await lease(pull, 0, 500)
    await inbox.events(card(), { receipt: first.receipt, offset: 0, events: [artifact('old')], leaseMs: 500 })
    const second = await lease(pull)
    expect(second).toMatchObject({ taskId: first.taskId, attempt: 2 })
    await expect(
      inbox.events(card(), { receipt: first.receipt, offset: 1, events: [artifact('late')] }),
    ).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await inbox.events(card(), { receipt: second.receipt, offset: 0, events: [status('COMPLETED')] })
    expect(rpc(await ask(host, 'GetTask', { id: first.taskId })).result.status.state).toBe('TASK_STATE_COMPLETED')
  })

  test('inbox - a stream says when the next lessee begins, also after the first has put the request back', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    const response = host.post(PULL, send('hello', 'm1', 1, 'SendStreamingMessage'), V10)
    const { receipt } = await lease(pull)
    await inbox.events(card(), { receipt, offset: 0, events: [artifact('old')] })
    await inbox.nack(card(), { receipt })
    // One more lessee that writes nothing: the events are those of the first all the same.
    await inbox.nack(card(), { receipt: (await lease(pull)).receipt })
    const last = await lease(pull)
    await inbox.events(card(), { receipt: last.receipt, offset: 0, events: [artifact('new'), status('COMPLETED')] })
    const { text } = await response
    const marks = [...text.matchAll(/"text":"(old|new)"|"state":"delivered","attempt":(\d)/g)]
    expect(marks.map(([, part, attempt]) => part ?? attempt)).toEqual(['old', '2', 'new'])
  })

  test('inbox - when all attempts are used, or the time is over, the task has failed with the reason', async () => {
    const pull = await openPull({ max_attempts: 1 })
    const { host } = pull
    const { id } = rpc(await host.post(PULL, send('hello', 'm1'), V10)).result.task
    await lease(pull, 0, 20)
    await until(async () => rpc(await ask(host, 'GetTask', { id })).result.status.state === 'TASK_STATE_FAILED')
    expect(rpc(await ask(host, 'GetTask', { id })).result.status.message.parts[0]?.text).toBe(
      'no delivery of 1 was answered',
    )
  })

  test('inbox - a request that is not fetched in time has failed', async () => {
    const pull = await openPull({ ttl_seconds: 1 })
    const { host } = pull
    const { id } = rpc(await host.post(PULL, send('hello', 'm1'), V10)).result.task
    await until(async () => rpc(await ask(host, 'GetTask', { id })).result.status.state === 'TASK_STATE_FAILED')
    const stream = await host.post(PULL, send('hello', 'm1', 2, 'SendStreamingMessage'), V10)
    expect(stream.text).toContain('"signalbox.reason":"DELIVERY_EXPIRED"')
  })

  test('inbox - a full inbox refuses requests, and says when to come again', async () => {
    const { host } = await openPull({ max_messages: 1 })
    await host.post(PULL, send('one', 'm1'), V10)
    const refused = await host.post(PULL, send('two', 'm2'), V10)
    expect(rpc(refused).error).toMatchObject({ code: -32603, data: [{ reason: 'INBOX_FULL' }, { retryDelay: '30s' }] })
    const rest = await fetch(`${host.base}/a2a/${PULL}/message:send`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify((send('two', 'm2') as { params: object }).params),
    })
    expect(rest.status).toBe(429)
  })

  test('inbox - a subscription begins with the task as it is, and goes on live; an ended task has none', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    const { id } = rpc(await host.post(PULL, send('hello', 'm1'), V10)).result.task
    const { receipt } = await lease(pull)
    await inbox.events(card(), { receipt, offset: 0, events: [status('WORKING'), artifact('one ')] })
    const response = ask(host, 'SubscribeToTask', { id })
    await until(() => host.connector.openStreams() === 1)
    await inbox.events(card(), { receipt, offset: 2, events: [artifact('two'), status('COMPLETED')] })
    const answer = await response
    const events = answer.text
      .split('\n\n')
      .filter((event) => event.includes('data: '))
      .map((event) => rpc({ ...answer, text: /^data: (.*)$/m.exec(event)?.[1] ?? '' }).result)
    expect(events.map((event) => Object.keys(event)[0])).toEqual(['task', 'artifactUpdate', 'statusUpdate'])
    expect(events[0]?.task.artifacts?.[0]?.parts).toEqual([{ text: 'one ' }])
    expect(rpc(await ask(host, 'SubscribeToTask', { id })).error?.code).toBe(-32004)
  })

  test('inbox - a lessee that floods its task is refused, and can still end it', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    await host.post(PULL, send('hello', 'm1'), V10)
    const { receipt, taskId } = await lease(pull)
    const many = Array.from({ length: 2_000 }, () => artifact('x'))
    let offset = 0
    for (; offset < 8_000; offset += 2_000) await inbox.events(card(), { receipt, offset, events: many })
    await expect(inbox.events(card(), { receipt, offset, events: many })).rejects.toMatchObject({
      code: 'EVENT_INVALID',
      message: expect.stringContaining('the most are 10000'),
    })
    const large = [artifact('x'.repeat(17 * 1024 * 1024))]
    await expect(inbox.events(card(), { receipt, offset, events: large })).rejects.toMatchObject({
      code: 'EVENT_INVALID',
    })
    await inbox.events(card(), { receipt, offset, events: [status('COMPLETED')] })
    expect(rpc(await ask(host, 'GetTask', { id: taskId })).result.status.state).toBe('TASK_STATE_COMPLETED')
  })

  test('inbox - a card that switches to a url and back keeps the tasks of the inbox', async () => {
    const pull = await openPull()
    const { host, inbox, card } = pull
    const { id } = rpc(await host.post(PULL, send('hello', 'm1'), V10)).result.task
    await host.registry.register({ agent_id: PULL, name: 'p', url: 'http://127.0.0.1:9/' }, OWNER)
    expect(rpc(await ask(host, 'GetTask', { id })).error?.data?.[0]?.reason).toBe('AGENT_UNREACHABLE')
    await host.registry.register({ agent_id: PULL, name: 'p', a2a: { pull: true } }, OWNER)
    await until(() => host.registry.get(PULL)?.a2a !== undefined)
    const { receipt, taskId } = await lease(pull)
    expect(taskId).toBe(id)
    await inbox.events(card(), { receipt, offset: 0, events: [status('COMPLETED')] })
    expect(rpc(await ask(host, 'GetTask', { id })).result.status.state).toBe('TASK_STATE_COMPLETED')
  })
})
