import type { ContractEngine, ContractHarness } from '@signalbox/broker-core/testing'
import { engineContract } from '@signalbox/broker-core/testing'
import { NATS_SERVER, NatsCluster, NatsServer } from '@signalbox/engine-nats/testing'
import { afterAll, beforeAll, describe, test, vi } from 'vitest'

import { harnessOn } from './contract-harness.ts'

/** `CONTRACT_ON_CLUSTER=1` runs the whole contract on three servers with three replicas, which takes minutes. */
const ON_CLUSTER = process.env['CONTRACT_ON_CLUSTER'] === '1'

// Most of a case's time is waiting: they run side by side, those that can on one engine. A cluster has work to do.
vi.setConfig(ON_CLUSTER ? { maxConcurrency: 3, testTimeout: 120_000 } : { maxConcurrency: 16 })

describe.skipIf(NATS_SERVER === undefined)(`engine contract${ON_CLUSTER ? ' on three servers' : ''}`, () => {
  let servers: AsyncDisposable & { readonly urls: readonly string[] }
  let opened: Promise<ContractEngine> | undefined
  const harness = harnessOn(() => ({ servers: servers.urls, replicas: ON_CLUSTER ? 3 : 1 }))
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
    servers = await (ON_CLUSTER ? NatsCluster.start() : NatsServer.start())
  }, 60_000)

  afterAll(async () => {
    await (await opened)?.dispose()
    await servers[Symbol.asyncDispose]()
  }, 60_000)

  for (const one of engineContract) {
    // oxlint-disable-next-line vitest/expect-expect, vitest/valid-title -- a case has its name, and asserts by itself
    test.concurrent(one.name, () => one.run(one.isolated ? harness : shared))
  }
})
