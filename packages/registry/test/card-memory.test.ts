import { expect, test } from 'vitest'

import { ALICE, BOB, card, openBench } from './registry-bench.ts'

/** 20,000 empty arrays: 60 KB of text, and 1.4 MB of values. */
const LARGE = { metadata: { values: Array.from({ length: 20_000 }, () => []) } }

test('R11 - card memory: cards are refused before they fill the memory, and one owner gets half of it', async () => {
  const { node, restart } = await openBench()
  const options = { maxCardMemoryBytes: 7_000_000 }
  const one = await node(options)
  await one.register(card('a1', LARGE), ALICE)
  await one.register(card('a2'), ALICE)
  // The same again takes no more.
  await one.register(card('a1', LARGE), ALICE)
  const more = Promise.allSettled(['a3', 'a4', 'a5'].map((id) => one.register(card(id, LARGE), ALICE)))
  expect((await more).filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  await restart()
  const again = await node(options)
  await expect(again.register(card('a6', LARGE), ALICE)).rejects.toMatchObject({
    code: 'CALLER_AGENT_LIMIT',
    message:
      "the cards of this caller's agents would take more than 3 MiB of memory; deregister some, or register smaller cards",
    details: [{ limit: 'card_bytes', most: 3_500_000 }],
  })
  await again.register(card('b1', LARGE), BOB)
  await again.register(card('b2', LARGE), BOB)
  await expect(again.register(card('c1', LARGE), { clientId: 'carol' })).rejects.toMatchObject({ code: 'AGENT_LIMIT' })
  await again.deregister('b1', BOB)
  await again.register(card('c1', LARGE), { clientId: 'carol' })
})
