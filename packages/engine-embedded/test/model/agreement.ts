import * as fc from 'fast-check'

import { commands, drain } from './commands.ts'
import { QueueModel } from './queue-model.ts'
import { Session, Store } from './session.ts'

/** Runs random interleavings of queue commands on a store and on the model, and fails where they differ. */
export async function agree(seed: number, runs: number, limitMs: number): Promise<void> {
  const store = await Store.open()
  try {
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands: 40, size: '+1' }), async (run) => {
        const model = new QueueModel(store.clock)
        const session = new Session(store)
        await fc.asyncModelRun(() => ({ model, real: session }), run)
        await drain(model, session)
      }),
      { seed, numRuns: runs, interruptAfterTimeLimit: limitMs, markInterruptAsFailure: true },
    )
  } finally {
    await store.close()
  }
}
