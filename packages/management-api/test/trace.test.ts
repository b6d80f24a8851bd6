import { expect, test } from 'vitest'

import { manage, text } from './management-server.ts'

interface Trace {
  readonly ids: readonly string[]
  readonly steps: readonly { readonly event: string }[]
  readonly audit: readonly unknown[]
  readonly places: readonly unknown[]
}

const SHOP = { clientId: 'shop' }
const TRACE = '0af7651916cd43dd8448eb211c80319c'

test('trace - a message is followed from its acceptance to its redrive', async () => {
  const { act, get, broker } = await manage()
  const { queues } = broker.as(SHOP)
  const input = { body: text('x'), maxReceiveCount: 2, deadLetterQueue: 'dead' }
  const { id } = await queues.send('orders', { ...input, tags: { traceparent: `00-${TRACE}-b7ad6b7169203331-01` } })
  for (let i = 0; i < 2; i++) await queues.nack((await queues.receive('orders')).map(({ receipt }) => receipt))
  const trace = async (query: string) => (await get<Trace>(`/api/trace?${query}`)).data
  expect(await trace(`id=${id}`)).toMatchObject({
    node: 'n1',
    ids: [id],
    steps: [
      { event: 'accepted', channel: 'orders', type: 'queues', party: 'shop' },
      { event: 'delivered', channel: 'orders' },
      { event: 'redelivered', channel: 'orders' },
    ],
    remembered_since: null,
    places: [{ channel: 'dead', dead_letter_of: 'orders', message: { id, body: 'x' } }],
  })
  await act('redrive_dead_letters', { channel: 'dead' })
  const after = await trace(`id=${id}`)
  expect(after.ids).toHaveLength(2)
  expect(after.steps.map(({ event }) => event).slice(-2)).toEqual(['accepted', 'redriven'])
  expect(after.places).toMatchObject([{ channel: 'orders', message: { id: after.ids[1] } }])
  expect((await trace(`trace_id=${TRACE}`)).ids).toEqual(expect.arrayContaining([id]))
})

test('trace - resent messages refer to their original, and the audit log names them', async () => {
  const { act, get, broker } = await manage()
  const { id } = await broker.as(SHOP).eventsStore.publish('log', { body: text('x') })
  const copy = await act('resend_message', { type: 'events_store', channel: 'log', sequence: 1 })
  const trace = async () => (await get<Trace>(`/api/trace?id=${id}&type=events_store&channel=log`)).data
  await expect.poll(async () => (await trace()).audit).toMatchObject([{ action: 'resend_message' }])
  expect((await trace()).places).toMatchObject([{ message: { id } }, { message: { id: copy.data.id } }])
})

test('trace - commands show their ends, and parameters are checked', async () => {
  const { get, broker } = await manage()
  const ids: string[] = []
  await broker.as(SHOP).commands.subscribe('ring', {}, ({ id }) => {
    ids.push(id)
    return { error: 'no' }
  })
  await broker.as(SHOP).commands.send('ring', { body: text('x') }, { timeoutMs: 60_000 })
  const { steps } = (await get<Trace>(`/api/trace?id=${ids[0]}`)).data
  expect(new Set(steps.map(({ event }) => event))).toEqual(new Set(['accepted', 'delivered', 'rejected']))
  for (const query of ['', 'id=x&type=queues', 'id=x&channel=q', 'trace_id=x']) {
    expect(await get<Trace>(`/api/trace?${query}`)).toMatchObject({ data: { code: 'PARAMETER_INVALID' } })
  }
  expect((await get<Trace>('/api/trace?id=no')).data).toMatchObject({ ids: ['no'], steps: [], audit: [], places: [] })
})

test('trace - the deliveries of one event to many subscribers are one step', async () => {
  const { get, broker } = await manage()
  const ids: string[] = []
  for (let i = 0; i < 3; i++) await broker.as(SHOP).events.subscribe('news', {}, ({ id }) => void ids.push(id))
  await broker.as(SHOP).events.publish('news', { body: text('x') })
  await expect.poll(() => ids.length).toBe(3)
  await expect
    .poll(async () => (await get<Trace>(`/api/trace?id=${ids[0]}`)).data.steps)
    .toMatchObject([
      { event: 'accepted', times: 1 },
      { event: 'delivered', times: 3 },
    ])
})
