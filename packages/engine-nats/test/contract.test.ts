import type { ContractEngine, ContractHarness } from '@signalbox/broker-core/testing'
import { engineContract } from '@signalbox/broker-core/testing'
import { afterAll, beforeAll, describe, test, vi } from 'vitest'

import { harnessOn } from './contract-harness.ts'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'

// Most of a case's time is waiting: they run side by side, those that can on one engine.
vi.setConfig({ maxConcurrency: 16 })

describe.skipIf(NATS_SERVER === undefined)('engine contract', () => {
  let server: NatsServer
  let opened: Promise<ContractEngine> | undefined
  const harness = harnessOn(() => server.url)
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

  beforeAll(async () => {
    server = await NatsServer.start()
  })

  afterAll(async () => {
    await (await opened)?.dispose()
    await server[Symbol.asyncDispose]()
  })

  for (const one of engineContract) {
    // oxlint-disable-next-line vitest/expect-expect, vitest/valid-title -- a case has its name, and asserts by itself
    test.concurrent(one.name, () => one.run(one.isolated ? harness : shared))
  }
})
