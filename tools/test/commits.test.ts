import { expect, test } from 'vitest'

import { problemsOfCommit } from '../commits/check.ts'

test.each([
  'feat(connector-mcp): show the depth of a queue',
  'fix(engine-nats): route late replies to their requester\n\nThe requester may be on another node.',
  'feat(client)!: drop the option',
  'refactor(registry,http-kit): share the reader',
  'perf: process frames in batches',
  'fix: embed the font',
  'fix(http-kit): seed the counter',
  'Merge branch main into release',
  'Revert "feat: add a door"',
])('commits - "%s" passes', (message) => {
  expect(problemsOfCommit(message)).toEqual([])
})

test.each([
  ['Add a door', 'the header must have the form'],
  ['feature: add a door', 'the type is "feature"'],
  ['feat(kitchen): add a door', 'the scope is "kitchen"'],
  ['feat: added a door', 'the subject begins with "added"'],
  ['feat: adds a door', 'the subject begins with "adds"'],
  ['feat: adding a door', 'the subject begins with "adding"'],
  ['feat: the door', 'the subject begins with "the"'],
  ['feat: Add a door', 'begin with a lower-case letter'],
  ['feat: add a door.', 'ends with a period'],
  ['feat: add a door\nwith a lock', 'the second line must be empty'],
  [`feat: add ${'doors '.repeat(20)}here`, 'it may have 100'],
  ['fix: route replies to whoever waits', '"whoever": use the noun'],
])('commits - "%s" is refused', (message, problem) => {
  expect(problemsOfCommit(message)).toEqual([expect.stringContaining(problem)])
})
