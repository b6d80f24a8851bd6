import { expect, onTestFinished, test } from 'vitest'
import { stringify } from 'yaml'

import type { SecurityEvent } from '../src/security/events.ts'
import { openPolicyFile, policyParser } from '../src/security/policy-file.ts'
import { file, policyText, replace } from './support/tokens.ts'

const PATIENT = { timeout: 20_000 }

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
  const path = file(policyText({}))
  const events: SecurityEvent[] = []
  const policy = await openPolicyFile(path, (event) => void events.push(event), 10)
  onTestFinished(() => policy[Symbol.dispose]())

  const text = policyOf(1_200)
  const parse = await policyParser()
  const inline = await cpuOf(() => parse(text))
  const aside = await cpuOf(async () => {
    replace(path, text)
    await expect.poll(() => events, PATIENT).toEqual([{ kind: 'policy.reloaded', file: path, rules: 1_200 }])
  })
  expect(aside).toBeLessThan(inline / 2)

  replace(path, `${text}\n  - {`)
  await expect.poll(() => events.length, PATIENT).toBe(2)
  expect(events[1]).toMatchObject({
    kind: 'policy.refused',
    problems: [expect.stringMatching(/^it is neither YAML nor JSON: /)],
  })
  expect(policy.authorization.policy.rules).toHaveLength(1_200)
})
