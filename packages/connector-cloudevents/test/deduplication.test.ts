import { expect, test } from 'vitest'

import { event, openCe } from './ce-server.ts'

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
