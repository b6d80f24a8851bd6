import * as fc from 'fast-check'
import { test } from 'vitest'

import { commands, drain } from './model/commands.ts'
import { QueueModel } from './model/queue-model.ts'
import { Session, Store } from './model/session.ts'

// oxlint-disable-next-line vitest/expect-expect -- fast-check asserts
test.concurrent.each([1, 2])(
  'C2, M9, C5 - queues: random interleavings agree with a simple model (seed %i)',
  async (seed) => {
    const store = await Store.open()
    try {
      await fc.assert(
        fc.asyncProperty(fc.commands(commands, { maxCommands: 40, size: '+1' }), async (run) => {
          const model = new QueueModel(store.clock)
          const session = new Session(store)
          await fc.asyncModelRun(() => ({ model, real: session }), run)
          await drain(model, session)
        }),
        { seed, numRuns: 100, interruptAfterTimeLimit: 90_000, markInterruptAsFailure: true },
      )
    } finally {
      await store.close()
    }
  },
  120_000,
)
