import { expect, test } from 'vitest'

import { event, openCe } from './ce-server.ts'

const BATCH = { 'content-type': 'application/cloudevents-batch+json' }

test('CE-9 - sends: each send returns 202 and the channel of the event', async () => {
  const { post, user } = await openCe()
  const sent = await post('send/event', event({ subject: 'orders' }))
  expect(sent).toMatchObject({
    status: 202,
    is_error: false,
    message: 'event published',
    data: { count: 1, events: [{ channel: 'orders', id: expect.any(String) }] },
  })
  expect(Number(sent.headers.get('content-length'))).toBe(sent.text.length)
  for (const sequence of [1, 2]) {
    expect(await post('send/event-store', event({ subject: 'log', id: `e${sequence}` }))).toMatchObject({
      status: 202,
      data: { count: 1, events: [{ channel: 'log', sequence, duplicate: false }] },
    })
  }
  expect(await post('queue/send', event({ subject: 'jobs', data: { n: 1 } }))).toMatchObject({
    status: 202,
    message: 'event stored',
    data: { count: 1, events: [{ channel: 'jobs', sequence: 1 }] },
  })
  expect(await user.eventsStore.read('log', { maxMessages: 9 })).toHaveLength(2)
  expect(await user.queues.peek('jobs', { maxMessages: 9 })).toMatchObject([
    {
      tags: { ce_specversion: '1.0', ce_id: '1', ce_source: '/test', ce_type: 'com.example.test', ce_subject: 'jobs' },
    },
  ])
})

test('CE-9 - sends: a queue takes delay, expiry and dead-lettering from the query', async () => {
  const { post, user } = await openCe()
  const query = 'channel=jobs&max_receive_count=1&dead_letter_queue=dead&expiration_seconds=60'
  await post(`queue/send?${query}`, event())
  await post('queue/send?channel=jobs&delay_seconds=3600', event({ id: 'later' }))
  const [first, ...others] = await user.queues.receive('jobs', { maxMessages: 9 })
  expect(others).toEqual([])
  expect(first?.message).toMatchObject({ maxReceiveCount: 1, deadLetterQueue: 'dead' })
  expect(first!.message.expiresAt - first!.message.timestamp).toBe(60_000)
  await user.queues.nack([first!.receipt])
  expect(await post('queue/receive?channel=dead', undefined)).toMatchObject({
    data: { messages: [{ event: { id: '1', brokertags: expect.stringContaining('"dlq_source":"jobs"') } }] },
  })
})

test('CE-6 - sends: the channel is the subject, else ?channel=', async () => {
  const { post, subscribe } = await openCe()
  const [a, b] = [await subscribe('events?channel=a'), await subscribe('events?channel=b')]
  await post('send/event?channel=b', event({ id: 'by-subject', subject: 'a' }))
  await post('send/event?channel=b', event({ id: 'by-query' }))
  expect(await a.nextJson()).toEqual(event({ id: 'by-subject', subject: 'a' }))
  expect(await b.nextJson()).toEqual(event({ id: 'by-query' }))
  expect(await post('send/event', event())).toMatchObject({
    status: 400,
    is_error: true,
    message: expect.stringMatching(/channel is missing.*subject/),
    data: { code: 'PARAMETER_INVALID' },
  })
})

test('CE-6 - sends: a reserved or invalid channel is 400 and changes nothing', async () => {
  const { post, user } = await openCe()
  for (const route of ['send/event', 'send/event-store', 'queue/send', 'send/command', 'send/query']) {
    expect(await post(route, event({ subject: '_AGENTS_.discovery' }))).toMatchObject({
      status: 400,
      is_error: true,
      message: 'reserved channel name',
      data: { code: 'CHANNEL_RESERVED' },
    })
    expect(await post(`${route}?channel=_AGENTS_.`, event())).toMatchObject({ message: 'reserved channel name' })
    expect(await post(route, event({ subject: 'a..b' }))).toMatchObject({
      status: 400,
      message: expect.stringContaining('invalid channel name "a..b"'),
      data: { code: 'CHANNEL_INVALID' },
    })
    expect(await post(route, event({ subject: 'a.*' }))).toMatchObject({ status: 400 })
  }
  for (const dead of ['_AGENTS_.x', '_AGENTS_.']) {
    const query = `queue/send?channel=q&max_receive_count=1&dead_letter_queue=${dead}`
    expect(await post(query, event())).toMatchObject({ status: 400, message: 'reserved channel name' })
  }
  expect(await post('queue/send?channel=q&max_receive_count=1&dead_letter_queue=q', event())).toMatchObject({
    status: 400,
    message: expect.stringContaining('dead_letter_queue is "q"; it must be another queue than the channel'),
  })
  for (const call of ['queue/receive?channel=_AGENTS_.x', 'queue/ack_all?channel=_AGENTS_.x']) {
    expect(await post(call)).toMatchObject({ status: 400, message: 'reserved channel name' })
  }
  expect(await user.channels.list()).toEqual([])
})

function ids(messages: readonly { tags: Readonly<Record<string, string>> }[]): (string | undefined)[] {
  return messages.map(({ tags }) => tags['ce_id'])
}

test('CE-5 - batches: a send takes them, in their order, to the channel of each event', async () => {
  const { post, user, subscribe } = await openCe()
  const stream = await subscribe('events?channel=>')
  const batch = [1, 2, 3, 4].map((n) => event({ id: `${n}`, ...(n % 2 === 0 ? { subject: 'even' } : {}), data: n }))
  const body = JSON.stringify(batch)
  for (const route of ['send/event', 'send/event-store', 'queue/send']) {
    const answer = await post(`${route}?channel=odd`, body, BATCH)
    expect(answer).toMatchObject({ status: 202, data: { count: 4 } })
    expect(answer.data.events.map(({ channel }: { channel: string }) => channel).sort()).toEqual([
      'even',
      'even',
      'odd',
      'odd',
    ])
  }
  for (const sent of batch) expect(await stream.nextJson()).toEqual(sent)
  expect(ids(await user.eventsStore.read('odd', { maxMessages: 9 }))).toEqual(['1', '3'])
  expect(ids(await user.queues.peek('even', { maxMessages: 9 }))).toEqual(['2', '4'])
  expect(await post('send/event', '[]', BATCH)).toMatchObject({ status: 202, data: { count: 0, events: [] } })
})

test('CE-5 - batches: one bad event sends nothing, and says which it is', async () => {
  const { post, user } = await openCe()
  const good = event({ subject: 'c' })
  for (const [bad, message] of [
    [event({ id: '' }), /attribute id is missing.*\(event 2 of the batch\)/],
    [event({ subject: '_AGENTS_.x' }), /^reserved channel name$/],
    [event({ subject: 'c d.' }), /invalid channel name/],
    [7, /must be a JSON object \(event 2 of the batch\)/],
  ] as const) {
    for (const route of ['send/event', 'send/event-store', 'queue/send']) {
      expect(await post(route, JSON.stringify([good, bad]), BATCH)).toMatchObject({
        status: 400,
        message: expect.stringMatching(message),
      })
    }
  }
  expect(await post('send/event?channel=c', '{}', BATCH)).toMatchObject({
    status: 400,
    message: 'invalid CloudEvent: a batch must be a JSON array of events',
  })
  expect(await user.channels.list()).toEqual([])
})

test('CE-5 - batches: commands, queries and responses do not take them', async () => {
  const { post } = await openCe()
  for (const route of ['send/command?channel=c', 'send/query?channel=c', 'send/response?request_id=r']) {
    expect(await post(route, '[]', BATCH)).toMatchObject({
      status: 415,
      message: expect.stringContaining('accepts one event at a time, no batch'),
    })
  }
})

for (const [route, type] of [
  ['queue/send', 'queues'],
  ['send/event-store', 'events_store'],
] as const) {
  const stored = async ({ user }: Awaited<ReturnType<typeof openCe>>): Promise<number> => {
    const { queue, eventsStore } = await user.channels.info(type, 'c')
    return queue?.waiting ?? eventsStore?.lastSequence ?? 0
  }

  test(`CE-21, C5 - deduplication: ${route} stores an event of one source and id once`, async () => {
    const server = await openCe()
    const { post } = server
    const send = async (more: object, query = '') => {
      const { data } = await post(`${route}?channel=c${query}`, event({ ...more }))
      return data.events[0]
    }
    const first = await send({ id: 'a' })
    expect(first).toMatchObject({ duplicate: false })
    expect(await send({ id: 'a', data: 'again' })).toMatchObject({ id: first.id, duplicate: true })
    expect(await send({ id: 'a', source: '/other' })).toMatchObject({ duplicate: false })
    expect(await send({ id: 'a' }, '&deduplicate=false')).toMatchObject({ duplicate: false })
    const long = 'x'.repeat(2_000)
    expect(await send({ id: `${long}1` })).toMatchObject({ duplicate: false })
    expect(await send({ id: `${long}2` })).toMatchObject({ duplicate: false })
    expect(await send({ id: `${long}1` })).toMatchObject({ duplicate: true })
    expect(await stored(server)).toBe(5)
  })

  test(`CE-21, C5 - deduplication: ${route} takes message_id in place of source and id`, async () => {
    const server = await openCe()
    const { post, user } = server
    const send = async (id: string) => (await post(`${route}?channel=c&message_id=m1`, event({ id }))).data.events[0]
    expect(await send('a')).toMatchObject({ duplicate: false })
    expect(await send('b')).toMatchObject({ duplicate: true })
    // The same id as the tag of other connectors.
    const message = { body: new Uint8Array(1), tags: { message_id: 'm1' } }
    const again = type === 'queues' ? user.queues.send('c', message) : user.eventsStore.publish('c', message)
    expect(await again).toMatchObject({ duplicate: true })
    const batch = JSON.stringify([event({ id: 'c' }), event({ id: 'c' }), event({ id: 'd' })])
    const headers = { 'content-type': 'application/cloudevents-batch+json' }
    expect(await post(`${route}?channel=c&message_id=m2`, batch, headers)).toMatchObject({
      status: 400,
      data: { code: 'PARAMETER_INVALID' },
    })
    const { data } = await post(`${route}?channel=c`, batch, headers)
    expect(data.events.map(({ duplicate }: { duplicate: boolean }) => duplicate)).toEqual([false, true, false])
    expect(await stored(server)).toBe(3)
  })
}
