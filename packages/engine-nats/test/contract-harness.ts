import type { ContractEngine, ContractHarness } from '@signalbox/broker-core/testing'
import { openNatsEngine } from '@signalbox/engine-nats'

import { unusedPrefix, wipe } from './support/prefix.ts'

/** Each case gets an engine of its own, with streams and subjects of its own, on one server. */
export function harnessOn(url: () => string): ContractHarness {
  return {
    async open(options = {}): Promise<ContractEngine> {
      const prefix = unusedPrefix()
      let engine = await openNatsEngine({ ...options, servers: [url()], prefix })
      return {
        get engine() {
          return engine
        },
        async restart() {
          await engine.close()
          engine = await openNatsEngine({ ...options, servers: [url()], prefix })
        },
        async dispose() {
          await engine.close()
          await wipe(url(), prefix)
        },
      }
    },
  }
}
