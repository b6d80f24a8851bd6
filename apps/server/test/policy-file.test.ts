import { EventEmitter, once } from 'node:events'

import { replaceFile, testFile } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'

import type { SecurityEvent } from '../src/security/events.ts'
import { openPolicyFile, policyParser } from '../src/security/policy-file.ts'
import { policyText } from './support/tokens.ts'

/** A policy in YAML. */
function policyOf(rules: number): string {
  const parsed: unknown = JSON.parse(
    policyText(...Array.from({ length: rules }, (_, i) => ({ clients: `client-${i}`, channels: `orders.${i}.*` }))),
  )
  return stringify(parsed)
}

/** Milliseconds of CPU time that this thread takes for something, whatever else the machine does. */
async function cpuOf(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

test('S4 - a large policy that changes is parsed off the event loop', async () => {
  const path = testFile(policyText({}))
  const events = new EventEmitter<{ security: [SecurityEvent] }>()
  const policy = await openPolicyFile(path, (event) => void events.emit('security', event), 10)
  onTestFinished(() => policy[Symbol.dispose]())

  const parse = await policyParser()
  let text = ''
  // Other work of the process adds to a time, so the least of several is compared if the first ones do not decide it.
  const least = { inline: Infinity, aside: Infinity }
  for (let rules = 1_191; rules <= 1_200 && least.aside >= least.inline / 2; rules++) {
    text = policyOf(rules)
    least.inline = Math.min(least.inline, await cpuOf(() => parse(text)))
    const thread = once(process, 'worker')
    const aside = await cpuOf(async () => {
      const reloaded = once(events, 'security')
      replaceFile(path, text)
      expect(await reloaded).toEqual([{ kind: 'policy.reloaded', file: path, rules }])
    })
    await thread
    least.aside = Math.min(least.aside, aside)
  }
  expect(least.aside).toBeLessThan(least.inline / 2)

  const before = policy.authorization.policy.rules
  const refused = once(events, 'security')
  replaceFile(path, `${text}\n  - {`)
  expect((await refused)[0]).toMatchObject({
    kind: 'policy.refused',
    problems: [expect.stringMatching(/^it is neither YAML nor JSON: /)],
  })
  expect(policy.authorization.policy.rules).toHaveLength(before.length)
})

test('S4 - a key that is a list or a map is refused before it is printed, which can take minutes', async () => {
  const parse = await policyParser()
  const text = `${'? '.repeat(1_000)}[a]\n: b`
  expect(() => parse(text)).toThrow('a key is a list or a map; it must be a text')
})
