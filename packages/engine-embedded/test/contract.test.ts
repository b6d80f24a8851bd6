import type { ContractEngine, ContractHarness } from '@signalbox/broker-core/testing'
import { engineContract } from '@signalbox/broker-core/testing'
import { afterAll, test, vi } from 'vitest'

import { harness } from './contract-harness.ts'

// Most of a case's time is waiting: they run side by side, those that can on one engine. One closed store leaves its writer
// thread to the next: with more cases at once, most isolated cases start another.
vi.setConfig({ maxConcurrency: 6 })

let opened: Promise<ContractEngine> | undefined

const shared: ContractHarness = {
  async open() {
    opened ??= harness.open()
    const { engine } = await opened
    return {
      engine,
      restart: () => Promise.reject(new Error('an isolated case, then')),
      dispose: () => Promise.resolve(),
    }
  },
}

afterAll(async () => (await opened)?.dispose())

for (const one of engineContract) {
  // oxlint-disable-next-line vitest/expect-expect, vitest/valid-title -- a case has its name, and asserts by itself
  test.concurrent(one.name, () => one.run(one.isolated ? harness : shared))
}
