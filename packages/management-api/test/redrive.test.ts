import { parsePolicy } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { manage, text } from './management-server.ts'

const ANY = { actions: '*', patterns: '*', effect: 'allow' }

test('redrive - a message goes back only to a queue that its sender may send to', async () => {
  const { act, broker, authorization } = await manage({
    policy: parsePolicy({
      rules: [
        { ...ANY, clients: 'mallory', channels: 'letters' },
        { ...ANY, clients: 'shop', channels: ['orders', 'letters'] },
      ],
    }),
  })
  const mallory = broker.as({ clientId: 'mallory' }).queues
  const forged = { dlq_source: 'orders', dlq_reason: 'max_receive_count', dlq_receive_count: '1' }
  await mallory.send('letters', { body: text('forged'), tags: forged })
  expect(await act('redrive_dead_letters', { channel: 'letters' })).toMatchObject({
    data: { redriven: 0, left: [{ reason: expect.stringContaining('it is not a dead letter') }] },
  })

  const shop = broker.as({ clientId: 'shop' }).queues
  await shop.send('orders', { body: text('late'), maxReceiveCount: 1, deadLetterQueue: 'letters' })
  await shop.nack((await shop.receive('orders')).map(({ receipt }) => receipt))
  authorization?.replace(parsePolicy({ rules: [{ ...ANY, clients: 'shop', channels: 'letters' }] }))
  const answer = await act('redrive_dead_letters', { channel: 'letters' })
  expect(answer.data.redriven).toBe(0)
  expect(answer.data.left[1].reason).toMatch(/^FORBIDDEN: .*"shop" send on queues "orders"/)
  expect(await shop.peek('letters', { maxMessages: 10 })).toHaveLength(2)
})
