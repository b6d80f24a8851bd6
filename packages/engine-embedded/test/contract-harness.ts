import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import type { ContractEngine, ContractHarness } from '@signalbox/broker-core/testing'

/** Each case gets an engine of its own, over a folder of its own. */
export const harness: ContractHarness = {
  async open(options = {}): Promise<ContractEngine> {
    const path = await mkdtemp(join(tmpdir(), 'signalbox-contract-'))
    let engine = await openEmbeddedEngine({ ...options, path })
    return {
      get engine() {
        return engine
      },
      async restart() {
        await engine.close()
        engine = await openEmbeddedEngine({ ...options, path })
      },
      async dispose() {
        await engine.close()
        await rm(path, { recursive: true, force: true })
      },
    }
  },
}
