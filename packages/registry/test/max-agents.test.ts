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
  expect(limit.isExcess('a1', 7)).toBe(false)

  registered.add('a1')
  expect(limit.exceededBy('a1', 9)).toBe(true)
  limit.forget('a1')
  expect(limit.isExcess('a1', 9)).toBe(false)
})
