import { spawn } from 'node:child_process'

import { Authorization, parsePolicy } from '@signalbox/broker-core'
import { AdmissionControl } from '@signalbox/http-kit'
import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { event, openCe } from './ce-server.ts'
import type { CeServer } from './ce-server.ts'
import type { Loose } from '@signalbox/testkit/sse-client'

async function fill({ post }: CeServer, channel: string, count: number): Promise<void> {
  const batch = Array.from({ length: count }, (_, i) => event({ id: `${i + 1}`, data: i + 1 }))
  await post(`queue/send?channel=${channel}`, JSON.stringify(batch), {
    'content-type': 'application/cloudevents-batch+json',
  })
}

function ids({ data }: { data: Loose }): string[] {
  return data.messages.map((message: Loose) => message.event.id)
}

test('CE-12 - queues: receive removes the messages that it returns; peek removes none', async () => {
  const server = await openCe({ settleGraceMs: 0 })
  const { post, user } = server
  await fill(server, 'q', 5)
  const peeked = await post('queue/receive?channel=q&is_peek=true&max_messages=3')
  expect(peeked).toMatchObject({ status: 200, message: '3 messages', is_error: false })
  expect(peeked.data.messages[0]).toEqual({ event: event({ data: 1 }), receive_count: 0 })
  const one = await post('queue/receive?channel=q')
  expect(one.data).toEqual({ messages: [{ event: event({ data: 1 }), receive_count: 1 }] })
  expect(ids(await post('queue/receive?channel=q&max_messages=1000'))).toEqual(['2', '3', '4', '5'])
  await until(async () => (await user.channels.info('queues', 'q')).queue?.inFlight === 0)
  expect(await post('queue/receive?channel=q&wait_timeout=0')).toMatchObject({ status: 200, data: { messages: [] } })
  expect(await post('queue/receive?channel=never&is_peek=true')).toMatchObject({ data: { messages: [] } })
})

test('CE-12 - queues: a receive waits for a first message', async () => {
  const admission = new AdmissionControl()
  const server = await openCe({ frontDoor: { admission } })
  const waiting = server.post('queue/receive?channel=q&wait_timeout=60')
  await until(() => admission.use.requests === 1)
  await server.post('queue/send', event({ subject: 'q' }))
  expect(ids(await waiting)).toEqual(['1'])
})

test('CE-12, M14 - queues: a destructive read is settled after the answer, at once with the next request', async () => {
  const server = await openCe({ settleGraceMs: 60_000 })
  await fill(server, 'q', 2)
  const inFlight = async () => (await server.user.channels.info('queues', 'q')).queue?.inFlight
  const connection = new RawConnection(server.base)
  connection.post('/ce/queue/receive?channel=q', '')
  expect((await connection.answer()).text).toContain('"id":"1"')
  expect(await inFlight()).toBe(1)
  connection.post('/ce/queue/receive?channel=other&is_peek=true', '')
  await connection.answer()
  await until(async () => (await inFlight()) === 0)
  // A connection that breaks right after the answer gives its messages back.
  connection.post('/ce/queue/receive?channel=q', '')
  expect((await connection.answer()).text).toContain('"id":"2"')
  connection.kill()
  await until(async () => (await inFlight()) === 0)
  const [message] = await server.user.queues.peek('q')
  expect(message).toMatchObject({ tags: { ce_id: '2' }, receiveCount: 1 })
})

test('CE-12 - queues: a client that disconnects while it waits receives no message', async () => {
  const admission = new AdmissionControl()
  const server = await openCe({ frontDoor: { admission } })
  const aborter = new AbortController()
  const gone = fetch(`${server.base}/ce/queue/receive?channel=q&wait_timeout=60`, {
    method: 'POST',
    signal: aborter.signal,
  })
  await until(() => admission.use.requests === 1)
  aborter.abort()
  await expect(gone).rejects.toThrow('aborted')
  await until(() => admission.use.requests === 0)
  await server.post('queue/send', event({ subject: 'q' }))
  expect(await server.post('queue/receive?channel=q')).toMatchObject({ data: { messages: [{ receive_count: 1 }] } })
})

test('CE-12 - queues: leased messages are settled by their receipts, once', async () => {
  const server = await openCe()
  const { post } = server
  await fill(server, 'q', 4)
  const leased = await post('queue/receive?channel=q&max_messages=3&visibility_seconds=60')
  const receipts: string[] = leased.data.messages.map(({ receipt }: { receipt: string }) => encodeURIComponent(receipt))
  expect(ids(leased)).toEqual(['1', '2', '3'])
  expect(new Set(receipts).size).toBe(3)
  expect(ids(await post('queue/receive?channel=q&is_peek=true&max_messages=9'))).toEqual(['4'])
  expect(await post(`queue/ack?receipt=${receipts[0]}&receipt=${receipts[2]}`)).toMatchObject({
    status: 200,
    is_error: false,
    message: '2 of 2 messages acknowledged',
    data: { settled: 2, lost: [] },
  })
  expect(await post(`queue/nack?receipt=${receipts[1]}`)).toMatchObject({ data: { settled: 1 }, is_error: false })
  expect(await post(`queue/ack?receipt=${receipts[0]}`)).toMatchObject({ data: { settled: 1 }, is_error: false })
  const again = await post(`queue/ack?receipt=${receipts[1]}&receipt=made-up`)
  expect(again).toMatchObject({ status: 200, is_error: true, data: { settled: 0, lost: { length: 2 } } })
  expect(again.message).toMatch(/^0 of 2 messages acknowledged; the other receipts are unknown/)
  const rest = await post('queue/receive?channel=q&max_messages=9&visibility_seconds=60')
  expect(rest.data.messages.map((m: Loose) => [m.event.id, m.receive_count])).toEqual([
    ['2', 2],
    ['4', 1],
  ])
})

test('CE-12 - queues: extend keeps a lease, and a nack with a delay makes the message visible later', async () => {
  const server = await openCe()
  const { post } = server
  await fill(server, 'q', 2)
  const leased = await post('queue/receive?channel=q&max_messages=2&visibility_seconds=2')
  const [kept, rejected] = leased.data.messages.map(({ receipt }: { receipt: string }) => encodeURIComponent(receipt))
  expect(await post(`queue/extend?receipt=${kept}&visibility_seconds=60`)).toMatchObject({
    status: 200,
    is_error: false,
    message: '1 of 1 messages leased again',
    data: { settled: 1, lost: [] },
  })
  const begun = performance.now()
  expect(await post(`queue/nack?receipt=${rejected}&delay_seconds=3`)).toMatchObject({
    is_error: false,
    message: '1 of 1 messages rejected',
  })
  // The first lease of two seconds is over before the delay: both calls have replaced it.
  const again = await post('queue/receive?channel=q&max_messages=2&wait_timeout=20&visibility_seconds=60')
  expect(again.data.messages.map((m: Loose) => [m.event.id, m.receive_count])).toEqual([['2', 2]])
  expect(performance.now() - begun).toBeGreaterThan(2800)
  expect(await post(`queue/extend?receipt=made-up&visibility_seconds=60`)).toMatchObject({
    status: 200,
    is_error: true,
    data: { settled: 0, lost: ['made-up'] },
  })
  expect(await post(`queue/extend?receipt=${kept}`)).toMatchObject({
    status: 400,
    data: { code: 'PARAMETER_INVALID', problems: [{ parameter: 'visibility_seconds' }] },
  })
})

test('CE-12 - queues: a nack with pause pauses the queue for the delay', async () => {
  const actions = ['receive', 'send', 'list', 'peek']
  const rules = [{ clients: '*', actions, patterns: 'queues', channels: ['q', 'other'], effect: 'allow' }]
  const server = await openCe({ authorization: new Authorization(parsePolicy({ rules })) })
  const { broker, post } = server
  await fill(server, 'q', 3)
  const lease = async (): Promise<string> => {
    const leased = await post('queue/receive?channel=q&wait_timeout=20&visibility_seconds=60')
    return encodeURIComponent(leased.data.messages[0].receipt)
  }
  const receipt = await lease()
  for (const wrong of ['pause=q', 'pause=q&delay_seconds=0', 'pause=q&delay_seconds=3601']) {
    expect(await post(`queue/nack?receipt=${receipt}&${wrong}`)).toMatchObject({
      status: 400,
      data: { code: 'PARAMETER_INVALID', problems: [{ parameter: 'pause', given: '"q"' }] },
    })
  }
  expect(await post(`queue/nack?receipt=${receipt}&pause=secret&delay_seconds=1`)).toMatchObject({
    status: 403,
    data: { code: 'FORBIDDEN' },
  })
  expect(await post(`queue/nack?receipt=${receipt}&pause=other&delay_seconds=1`)).toMatchObject({
    status: 404,
    data: { code: 'CHANNEL_NOT_FOUND' },
  })
  expect(broker.pauses.active).toBe(false)
  expect(await post(`queue/nack?receipt=${receipt}&pause=q&delay_seconds=1`)).toMatchObject({ data: { settled: 1 } })
  const end = broker.pausedUntil('q') ?? 0
  expect(end).toBeGreaterThan(Date.now())
  expect(await post('queue/receive?channel=q&wait_timeout=0')).toMatchObject({ data: { messages: [] } })
  // The nack waits for its delay: peek shows the others.
  expect(ids(await post('queue/receive?channel=q&is_peek=true&max_messages=9'))).toEqual(['2', '3'])
  await lease()
  expect(Date.now()).toBeGreaterThanOrEqual(end)
})

test('CE-12 - queues: ack_all drains and says how many', async () => {
  const server = await openCe()
  const { post } = server
  await fill(server, 'q', 5)
  await post('queue/send?channel=q&delay_seconds=600', event({ id: 'delayed' }))
  await post('queue/receive?channel=q&visibility_seconds=60')
  expect(await post('queue/ack_all?channel=q')).toMatchObject({
    status: 200,
    message: '5 messages removed',
    data: { count: 5 },
  })
  expect(await post('queue/ack_all?channel=q')).toMatchObject({ data: { count: 0 } })
  expect(await post('queue/ack_all?channel=q', 'a body that is ignored', { 'content-type': 'nonsense' })).toMatchObject(
    {
      status: 200,
    },
  )
})

test('CE-12 - queues: every message that a killed consumer leased is delivered again, with its receive count', async () => {
  const server = await openCe()
  await fill(server, 'q', 50)
  const url = `${server.base}/ce/queue/receive?channel=q&max_messages=50&visibility_seconds=2`
  const consumer = spawn(process.execPath, [
    '-e',
    `fetch(${JSON.stringify(url)}, { method: 'POST' }).then((r) => r.json()).then(({ data }) => {
      console.log(data.messages.length)
      setInterval(() => {}, 1000)
    })`,
  ])
  const held = await new Promise<string>((resolve, reject) => {
    consumer.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString().trim()))
    consumer.once('error', reject)
  })
  expect(held).toBe('50')
  const exited = new Promise((resolve) => consumer.once('exit', resolve))
  consumer.kill('SIGKILL')
  await exited
  const messages: Loose[] = []
  while (messages.length < 50) {
    const answer = await server.post('queue/receive?channel=q&max_messages=50&visibility_seconds=60&wait_timeout=10')
    messages.push(...answer.data.messages)
  }
  expect(messages.map((m) => m.event.id).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 50 }, (_, i) => `${i + 1}`),
  )
  expect(new Set(messages.map((m) => m.receive_count))).toEqual(new Set([2]))
})

test('CE-12 - queues: at shutdown a waiting receive ends with an empty answer', async () => {
  const admission = new AdmissionControl()
  const server = await openCe({ frontDoor: { admission } })
  const waiting = server.post('queue/receive?channel=q&wait_timeout=60')
  await until(() => admission.use.requests === 1)
  await server.connector.close()
  expect(await waiting).toMatchObject({ status: 200, data: { messages: [] } })
  expect(await server.post('queue/ack_all?channel=q')).toMatchObject({ status: 503, data: { code: 'SHUTTING_DOWN' } })
})

async function leaseOne({ post }: CeServer, channel: string): Promise<string> {
  const { data } = await post(`queue/receive?channel=${channel}&wait_timeout=20&visibility_seconds=60`)
  return encodeURIComponent(data.messages[0].receipt)
}

test('CE-12 - queues: a nack takes its delay from delay_seconds, then Retry-After, then the policy', async () => {
  const server = await openCe()
  const { post, broker, user } = server
  const retry = {
    max_receive_count: 0,
    dead_letter_queue: '',
    min_backoff_seconds: 600,
    max_backoff_seconds: 600,
    backoff_factor: 1,
    jitter: 0,
  }
  broker.settings.replace([{ type: 'queues', match: 'q', source: 'api', retry }])
  const state = async () => {
    const { queue } = await user.channels.info('queues', 'q')
    return [queue?.waiting, queue?.delayed, queue?.inFlight]
  }
  await fill(server, 'q', 1)
  await post(`queue/nack?receipt=${await leaseOne(server, 'q')}&delay_seconds=0`, undefined, { 'retry-after': '600' })
  expect(await state()).toEqual([1, 0, 0])
  const past = new Date(Date.now() - 60_000).toUTCString()
  await post(`queue/nack?receipt=${await leaseOne(server, 'q')}`, undefined, { 'retry-after': past })
  expect(await state()).toEqual([1, 0, 0])
  const begun = Date.now()
  const soon = new Date(begun + 2_000).toUTCString()
  await post(`queue/nack?receipt=${await leaseOne(server, 'q')}`, undefined, { 'retry-after': soon })
  expect(await state()).toEqual([0, 1, 0])
  const receipt = await leaseOne(server, 'q')
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(soon) - 20)
  await post(`queue/nack?receipt=${receipt}`, undefined, { 'retry-after': '1' })
  const last = await leaseOne(server, 'q')
  expect(await post(`queue/nack?receipt=${last}`)).toMatchObject({ data: { settled: 1 } })
  expect(await state()).toEqual([0, 1, 0])
  expect(await post(`queue/ack?receipt=${last}`)).toMatchObject({ is_error: true, data: { settled: 0 } })
})

test('CE-12 - queues: a wrong Retry-After is refused, and the lease continues', async () => {
  const server = await openCe()
  await fill(server, 'q', 1)
  const receipt = await leaseOne(server, 'q')
  const far = new Date(Date.now() + 50_000_000).toUTCString()
  for (const value of ['43201', '-1', '1.5', 'soon', '2030-01-01', far]) {
    const answer = await server.post(`queue/nack?receipt=${receipt}`, undefined, { 'retry-after': value })
    expect(answer, value).toMatchObject({
      status: 400,
      data: { code: 'PARAMETER_INVALID', problems: [{ parameter: 'Retry-After' }] },
    })
    expect(answer.message).toContain('seconds from 0 to 43200, or an HTTP date')
  }
  expect(await server.post(`queue/ack?receipt=${receipt}`)).toMatchObject({ data: { settled: 1 } })
})

test('CE-12 - queues: reject moves a message to its dead-letter queue, or is refused without one', async () => {
  const server = await openCe()
  const { post } = server
  await post('queue/send?channel=q&dead_letter_queue=dead&max_receive_count=5', event({ id: 'bad' }))
  expect(await post(`queue/nack?receipt=${await leaseOne(server, 'q')}&reject=true`)).toMatchObject({
    is_error: false,
    message: '1 of 1 messages moved to a dead-letter queue',
  })
  const { data } = await post('queue/receive?channel=dead&is_peek=true')
  expect(JSON.stringify(data)).toContain('rejected')
  await fill(server, 'q', 1)
  const receipt = await leaseOne(server, 'q')
  expect(await post(`queue/nack?receipt=${receipt}&reject=true`)).toMatchObject({
    status: 409,
    is_error: true,
    data: { code: 'NO_DEAD_LETTER_QUEUE', channel: 'q' },
  })
  expect(await post(`queue/nack?receipt=${receipt}&reject=true&delay_seconds=1`)).toMatchObject({
    status: 400,
    data: { problems: [{ parameter: 'delay_seconds' }] },
  })
  expect(await post(`queue/ack?receipt=${receipt}`)).toMatchObject({ data: { settled: 1 } })
})
