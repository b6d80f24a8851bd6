import { expect, test } from 'vitest'

import { event, openCe } from './ce-server.ts'

test('schemas - an event whose data does not match is 400 with each problem', async () => {
  const { post, broker, user } = await openCe()
  const schema = { default: 'urn:a', versions: { 'urn:a': { required: ['n'] }, 'urn:b': { type: 'string' } } }
  const settings = (['queues', 'events', 'events_store', 'commands', 'queries'] as const).map(
    (type) => ({ type, match: 'c', source: 'api', schema }) as const,
  )
  broker.settings.replace([...settings, { type: 'queues', match: 'newer', source: 'api', unreadable: true }])
  for (const route of ['send/event', 'send/event-store', 'send/command', 'send/query', 'queue/send']) {
    expect(await post(route, event({ subject: 'c', data: { m: 1 } }))).toMatchObject({
      status: 400,
      is_error: true,
      data: { code: 'SCHEMA_MISMATCH', problems: [{ pointer: '', problem: 'must have "n", which is missing' }] },
    })
  }
  expect(await post('queue/send', event({ subject: 'c', data: { n: 1 } }))).toMatchObject({ status: 202 })
  expect(await post('queue/send', event({ subject: 'c', id: '2', data: 'x', dataschema: 'urn:b' }))).toMatchObject({
    status: 202,
  })
  expect(await post('queue/send', event({ subject: 'c', data: {}, dataschema: 'urn:c' }))).toMatchObject({
    status: 400,
    data: { code: 'SCHEMA_MISMATCH', versions: ['urn:a', 'urn:b'] },
  })
  expect(await post('queue/send', event({ subject: 'newer' }))).toMatchObject({
    status: 503,
    data: { code: 'SETTING_UNSUPPORTED' },
  })
  expect(await user.queues.peek('c', { maxMessages: 9 })).toHaveLength(2)
})
