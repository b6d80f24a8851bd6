import { expect, test } from 'vitest'

import { ConnectionCaller } from '../src/endpoint/connection-caller.ts'
import { AdmissionControl } from '../src/index.ts'

test('limits - a caller whose idle account was forgotten is counted in the current one', async () => {
  const control = new AdmissionControl()
  const caller = new ConnectionCaller({ clientId: 'anonymous' }, '192.0.2.1', undefined, true)
  const first = caller.accountIn(control)
  expect(caller.accountIn(control)).toBe(first)
  // An account is idle two seconds after its last use, and a process starts at zero.
  await expect.poll(() => performance.now()).toBeGreaterThan(2_000)
  for (let i = 0; i < 2_048; i++) control.account(`address:other ${i}`, true)
  const current = caller.accountIn(control)
  expect(current).not.toBe(first)
  expect(current).toBe(control.account(caller.account, true))
})
