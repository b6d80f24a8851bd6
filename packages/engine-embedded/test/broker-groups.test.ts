import { expect, test } from 'vitest'

import { ALICE, failure, openBroker, text } from './broker-fixture.ts'

const ORDERED = { mode: 'ordered', max_in_flight_per_group: 1 } as const
const FAIR = { mode: 'fair', max_in_flight_per_group: 0 } as const

test('groups - a send with too long a group is refused, and names the tag and the limit', async () => {
  const { broker, engine } = await openBroker()
  const { queues } = broker.as(ALICE)
  engine.settings.replace([{ type: 'queues', match: 'q', source: 'api', groups: FAIR }])
  for (const [tags, field] of [
    [{ group: 'é'.repeat(129) }, 'tags.group'],
    [{ ce_partitionkey: 'x'.repeat(257), group: 'fine' }, 'tags.ce_partitionkey'],
  ] as const) {
    const error = await failure(queues.sendBatch('q', [text('fine'), { ...text('x'), tags }]))
    expect(error.code).toBe('MESSAGE_INVALID')
    expect(error.message).toContain(`${field} has 25`)
    expect(error.message).toContain('at most 256 bytes')
    expect(error.details).toMatchObject({ field })
  }
  expect(await engine.channels.list()).toEqual([])
  await queues.send('q', { ...text('x'), tags: { group: 'é'.repeat(128) } })
  await queues.send('other', { ...text('x'), tags: { group: 'x'.repeat(1_000) } })
})

test('groups - an ordered queue refuses a delay, a fair queue accepts it', async () => {
  const { broker, engine } = await openBroker()
  const { queues } = broker.as(ALICE)
  engine.settings.replace([
    { type: 'queues', match: 'ordered', source: 'api', groups: ORDERED },
    { type: 'queues', match: 'fair', source: 'api', groups: FAIR },
  ])
  const error = await failure(queues.send('ordered', { ...text('x'), delayMs: 5_000 }))
  expect(error.code).toBe('ARGUMENT_INVALID')
  expect(error.message).toContain('a message with a delay is refused, because the queue delivers groups in order')
  expect(error.details).toMatchObject({ argument: 'delayMs' })
  await queues.send('fair', { ...text('x'), delayMs: 5_000 })
  await queues.send('ordered', text('x'))
})

test('groups - a large message that its reader may not have is refused before it is leased', async () => {
  const { broker, engine } = await openBroker()
  const { queues } = broker.as(ALICE)
  engine.settings.replace([{ type: 'queues', match: 'ordered', source: 'api', groups: ORDERED }])
  await queues.send('ordered', text('x'.repeat(2_000_000)))
  const asked: number[] = []
  const admit = (bytes: number): never => {
    asked.push(bytes)
    throw new Error('refused')
  }
  await expect(queues.receive('ordered', { admit, waitMs: 5_000 })).rejects.toThrow('refused')
  expect(asked).toEqual([2_000_000])
  const [delivery] = await queues.receive('ordered', { waitMs: 5_000 })
  expect(delivery?.message.receiveCount).toBe(1)
})
