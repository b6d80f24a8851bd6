import { expect, test } from 'vitest'

import { MaxAgents } from '../src/directory/max-agents.ts'

test('R7 - MaxAgents: a call learns that its agent was one too many, also when another node has taken it back already', () => {
  const registered = new Set(['a1'])
  const limit = new MaxAgents(1, registered)
  const late = limit.placeFor('a1')
  registered.delete('a1')
  late.take()
  registered.add('other').add('a1')
  expect(limit.exceededBy('a1', 7)).toBe(true)
  registered.delete('a1')
  limit.forget('a1')
  expect(limit.isExcess('a1', 7)).toBe(true)
  late.release()
  registered.add('a1')
  expect(limit.isExcess('a1', 7)).toBe(false)

  expect(limit.exceededBy('a1', 9)).toBe(true)
  limit.forget('a1')
  expect(limit.isExcess('a1', 9)).toBe(false)
})

test('R7 - MaxAgents: an entry that was compacted away before this node read it was one too many', () => {
  const registered = new Set(['other'])
  const limit = new MaxAgents(1, registered)
  expect(limit.isExcess('taken-back', 7)).toBe(true)
  expect(limit.isExcess('other', 6)).toBe(false)
  expect(new MaxAgents(0, registered).isExcess('taken-back', 7)).toBe(false)
})
