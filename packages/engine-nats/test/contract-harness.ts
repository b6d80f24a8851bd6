import type { ContractEngine, ContractHarness } from '@signalbox/broker-core/testing'
import type { NatsEngine, NatsEngineOptions } from '@signalbox/engine-nats'
import { openNatsEngine } from '@signalbox/engine-nats'

import { unusedPrefix, wipe } from './support/prefix.ts'

/** Each case gets an engine of its own, with streams and subjects of its own, on the same servers. */
export function harnessOn(servers: () => Pick<NatsEngineOptions, 'servers' | 'replicas'>): ContractHarness {
  return {
    async open(options = {}): Promise<ContractEngine> {
      const prefix = unusedPrefix()
      // A server that many cases share answers late on a busy machine or a busy disk.
      const settings = { ...options, requestTimeoutMs: 20_000, prefix }
      const open = (): Promise<NatsEngine> => openNatsEngine({ ...settings, ...servers() })
      let engine = await open()
      return {
        get engine() {
          return engine
        },
        async restart() {
          await engine.close()
          engine = await open()
        },
        async dispose() {
          await engine.close()
          await wipe(servers().servers, prefix)
        },
      }
    },
  }
}
