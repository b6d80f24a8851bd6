import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { expect, test } from 'vitest'

import { ROOT } from '../testing/pages.ts'
import { describeReadme, EMBEDDED, startNodes } from '../testing/readme-commands.ts'

describeReadme(EMBEDDED)

// One node on NATS is in the stress tests.
describeReadme(
  { name: 'CL-11 - README, each request at another node', open: (stack) => startNodes(stack, 3) },
  NATS_SERVER !== undefined,
)

test('README - the two commands that do all the set-up are there', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  expect(readme).toContain('npm ci && npm start')
  expect(readme).toContain('npm ci && npm test')
})
