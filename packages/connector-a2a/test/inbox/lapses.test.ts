import type { JsonObject } from '@signalbox/http-kit'
import type { AgentCard, AgentInbox, InboxItem } from '@signalbox/registry'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { describe, expect, test } from 'vitest'

import { TaskLog } from '../../src/inbox/task-log.ts'
import { RunLog } from '../../src/runs/run-log.ts'
import { FullDisk } from '../full-disk.ts'
import type { Answer, GatewayHost, HostOptions } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'
import { send } from '../runs/durable-host.ts'

const PULL = 'puller'
const V10 = { 'a2a-version': '1.0' }

interface Pull {
  readonly host: GatewayHost
  readonly inbox: AgentInbox
  readonly card: AgentCard
}

async function openPull(queue: object = {}, options: HostOptions = {}): Promise<Pull> {
  const host = await openGateway(options)
  await host.registry.register({ agent_id: PULL, name: 'p', a2a: { pull: true, queue } }, { clientId: 'owner' })
  const { inbox } = host.connector
  const card = host.registry.get(PULL)
  if (inbox === undefined || card === undefined) throw new Error('the agent has no inbox')
  return { host, inbox, card }
}

async function lease({ inbox, card }: Pull, leaseMs = 60_000): Promise<InboxItem> {
  const [item] = await inbox.lease(card, { max: 1, waitMs: 5_000, leaseMs, signal: new AbortController().signal })
  if (item === undefined) throw new Error('nothing was leased')
  return item
}

interface Task {
  readonly id: string
  readonly status: { readonly state: string }
  readonly metadata: object
  readonly artifacts?: readonly { readonly parts: readonly object[] }[]
}

function status(state: string): JsonObject {
  return { statusUpdate: { status: { state: `TASK_STATE_${state}` } } }
}

function artifact(text: string): JsonObject {
  return { artifactUpdate: { artifact: { artifactId: 'a', parts: [{ text }] }, append: true } }
}

function taskOf({ text }: Answer): Task {
  const { result } = JSON.parse(text) as { result: Task & { readonly task?: Task } }
  return result.task ?? result
}

async function park({ host }: Pull, messageId = 'm1'): Promise<Task> {
  return taskOf(await host.post(PULL, send('hello', messageId), V10))
}

/** Parks a request without waiting for its answer. */
async function parkAtOnce(pull: Pull, messageId = 'm1'): Promise<Task> {
  const message = { messageId, role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  return taskOf(await ask(pull, 'SendMessage', { message, configuration: { returnImmediately: true } }))
}

function ask({ host }: Pull, method: string, params: object): Promise<Answer> {
  return host.post(PULL, { jsonrpc: '2.0', id: 1, method, params }, V10)
}

async function get(pull: Pull, id: string): Promise<Task> {
  return taskOf(await ask(pull, 'GetTask', { id }))
}

/** Makes a call before the next state of a task is stored. Resolves with its answer. */
function beforeState(disk: FullDisk, call: () => Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    disk.before = (channel) => {
      if (channel !== '_AGENTS_.parked') return undefined
      disk.before = () => undefined
      return call().then(resolve, reject)
    }
  })
}

describe('tasks whose lessees or callers behave in other ways', () => {
  test('inbox - a task has failed whose lessee did not come back before its time was over', async () => {
    const pull = await openPull({ ttl_seconds: 1 })
    // The lessee waits already, so that the request does not expire before.
    const leased = lease(pull, 1_500)
    const { id } = await parkAtOnce(pull)
    const { receipt } = await leased
    await pull.inbox.events(pull.card, { receipt, offset: 0, events: [status('WORKING')], leaseMs: 1_500 })
    await until(async () => (await get(pull, id)).status.state === 'TASK_STATE_FAILED')
    expect(await pull.inbox.status(pull.card)).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('inbox - a lessee that renews its lease may work for longer than the request could wait', async () => {
    const pull = await openPull({ ttl_seconds: 1 })
    const leased = lease(pull)
    const { id } = await parkAtOnce(pull)
    const { receipt } = await leased
    const end = performance.now() + 4_500
    await until(async () => {
      await pull.inbox.events(pull.card, { receipt, offset: 0, events: [] })
      return performance.now() > end
    })
    await pull.inbox.events(pull.card, { receipt, offset: 0, events: [status('COMPLETED')] })
    expect((await get(pull, id)).status.state).toBe('TASK_STATE_COMPLETED')
  })

  test('inbox - a request may wait for longer than the log keeps events', async () => {
    const pull = await openPull({ ttl_seconds: 60 }, { logSeconds: 4 })
    const { id } = await park(pull)
    const { system } = pull.host
    await until(async () => (await system.eventsStore.getLast('_AGENTS_.run-log', `${id}/1`)) === undefined)
    expect(await get(pull, id)).toMatchObject({
      status: { state: 'TASK_STATE_SUBMITTED' },
      metadata: { 'signalbox.delivery': { state: 'stored', position: 1 } },
    })
    const { receipt, taskId } = await lease(pull)
    expect(taskId).toBe(id)
    await pull.inbox.events(pull.card, { receipt, offset: 0, events: [status('COMPLETED')] })
    expect((await get(pull, id)).status.state).toBe('TASK_STATE_COMPLETED')
  })

  test('inbox - a call that is repeated while the first is in progress adds nothing, and is no lost lease', async () => {
    const pull = await openPull()
    const { id } = await park(pull)
    const { receipt } = await lease(pull)
    const call = { receipt, offset: 0, events: [artifact('once')] }
    const results = await Promise.all([pull.inbox.events(pull.card, call), pull.inbox.events(pull.card, call)])
    expect(results.map(({ accepted }) => accepted)).toEqual([1, 1])
    await pull.inbox.events(pull.card, { receipt, offset: 1, events: [status('COMPLETED')] })
    expect((await get(pull, id)).artifacts).toEqual([{ artifactId: 'a', parts: [{ text: 'once' }] }])
  })

  test('inbox - a caller who reads that the task waits may answer before its state is stored', async () => {
    const disk = new FullDisk()
    const pull = await openPull({}, { engine: disk.wrap })
    const { id } = await park(pull)
    const { receipt } = await lease(pull)
    const answered = beforeState(disk, async () => {
      expect((await get(pull, id)).status.state).toBe('TASK_STATE_INPUT_REQUIRED')
      const message = { messageId: 'm2', role: 'ROLE_USER', parts: [{ text: 'more' }], taskId: id }
      return ask(pull, 'SendMessage', { message, configuration: { returnImmediately: true } })
    })
    await pull.inbox.events(pull.card, { receipt, offset: 0, events: [status('INPUT_REQUIRED')] })
    expect(taskOf(await answered)).toMatchObject({ id, status: { state: 'TASK_STATE_SUBMITTED' } })
    const second = await lease(pull)
    expect(second).toMatchObject({ taskId: id, attempt: 1, request: { message: { parts: [{ text: 'more' }] } } })
    await pull.inbox.events(pull.card, { receipt: second.receipt, offset: 0, events: [status('COMPLETED')] })
    expect((await get(pull, id)).status.state).toBe('TASK_STATE_COMPLETED')
    expect(await pull.inbox.status(pull.card)).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('inbox - a caller who reads that the task waits may cancel it before its state is stored', async () => {
    const disk = new FullDisk()
    const pull = await openPull({}, { engine: disk.wrap })
    const { id } = await park(pull)
    const { receipt } = await lease(pull)
    const canceled = beforeState(disk, () => ask(pull, 'CancelTask', { id }))
    await pull.inbox.events(pull.card, { receipt, offset: 0, events: [status('INPUT_REQUIRED')] })
    expect(taskOf(await canceled).status.state).toBe('TASK_STATE_CANCELED')
    expect((await get(pull, id)).status.state).toBe('TASK_STATE_CANCELED')
    expect(await pull.inbox.status(pull.card)).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test.each([
    ['WORKING', { endsRound: false, isOver: false }],
    ['INPUT_REQUIRED', { endsRound: true, isOver: false }],
    ['COMPLETED', { endsRound: true, isOver: true }],
  ])('inbox - another node sees in the log whether %s ends the round', async (state, end) => {
    const pull = await openPull()
    const { id } = await park(pull)
    const { receipt } = await lease(pull)
    await pull.inbox.events(pull.card, { receipt, offset: 0, events: [artifact('x'), status(state)] })
    const log = new TaskLog(new RunLog(pull.host.system, { maxAgeMs: 0, maxBytes: 0 }), 60_000)
    expect(await log.end(id)).toMatchObject(end)
  })

  test('inbox - a rejection ends the task, also if its caller asks to cancel it meanwhile', async () => {
    const disk = new FullDisk()
    const pull = await openPull({}, { engine: disk.wrap })
    const { id } = await park(pull)
    const { receipt } = await lease(pull)
    let isFirst = true
    disk.before = (channel) => {
      if (channel !== '_AGENTS_.parked' || !isFirst) return undefined
      isFirst = false
      return ask(pull, 'CancelTask', { id }).then(() => {})
    }
    await pull.inbox.nack(pull.card, { receipt, reject: true, reason: 'no' })
    expect((await get(pull, id)).status.state).toBe('TASK_STATE_FAILED')
  })

  test('inbox - a list of large tasks has several pages, with each task once', async () => {
    const pull = await openPull({ max_per_caller: 5 })
    const ids: string[] = []
    for (const messageId of ['m1', 'm2', 'm3']) {
      ids.unshift((await parkAtOnce(pull, messageId)).id)
      const { receipt } = await lease(pull)
      const events = [artifact('x'.repeat(3 * 1024 * 1024)), status('COMPLETED')]
      await pull.inbox.events(pull.card, { receipt, offset: 0, events })
    }
    const pages: string[][] = []
    for (let pageToken: string | undefined = ''; pages.length === 0 || pageToken !== '';) {
      const { text } = await ask(pull, 'ListTasks', { includeArtifacts: true, pageToken })
      const { result } = JSON.parse(text) as { result: { tasks: readonly Task[]; nextPageToken: string } }
      pages.push(result.tasks.map(({ id }) => id))
      pageToken = result.nextPageToken
    }
    expect(pages).toEqual([ids.slice(0, 2), ids.slice(2)])
    const { text } = await ask(pull, 'ListTasks', { pageSize: -1 })
    expect(JSON.parse(text)).toMatchObject({ result: { tasks: [{ id: ids[0] }], nextPageToken: ids[1] } })
  })

  test('inbox - a restart is no sign of a lessee: a call is answered at once', async () => {
    const folder = testFolder()
    const before = await openPull({}, { folder })
    await park(before)
    await lease(before)
    await before.host.close()
    const pull = await openPull({}, { folder })
    expect((await park(pull, 'm2')).status.state).toBe('TASK_STATE_SUBMITTED')
  })

  test('inbox - an event of a lessee may be larger than an answer of an agent that is called', async () => {
    const pull = await openPull({}, { agentMaxResponseBytes: 10_000 })
    const { id } = await park(pull)
    const { receipt } = await lease(pull)
    const events = [artifact('x'.repeat(50_000)), status('COMPLETED')]
    await pull.inbox.events(pull.card, { receipt, offset: 0, events })
    expect(await get(pull, id)).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ parts: [{ text: events[0] && 'x'.repeat(50_000) }] }],
    })
  })
})
