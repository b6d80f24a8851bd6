import { expect, test } from 'vitest'

import { ALICE, openBroker, text } from './broker-fixture.ts'

test('events stores - a listener that waits for some entries and not for others gets all of them', async () => {
  const { broker } = await openBroker()
  const { eventsStore } = broker.as(ALICE)
  const seen: number[] = []
  const { promise: complete, resolve } = Promise.withResolvers<void>()
  await eventsStore.subscribe('s', { from: 'first' }, {}, ({ sequence }) => {
    seen.push(sequence)
    if (sequence === 60) resolve()
    return sequence % 3 === 0 ? new Promise<void>((done) => setImmediate(done)) : undefined
  })
  await Promise.all(Array.from({ length: 60 }, (_, i) => eventsStore.publish('s', text(`${i}`))))
  await complete
  expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => i + 1))
})
