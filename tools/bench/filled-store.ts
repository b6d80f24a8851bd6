import { newFolder, startWorker } from './processes.ts'
import type { BenchContext } from './row.ts'
import type { Subject } from './subject.ts'

export const FILLED_CHANNEL = 'bench.depth'

/** The largest number of waiting messages before the baseline is taken. */
const WARM_UP_MESSAGES = 20_000

/** The number of messages of 1 KiB in the store. */
export function depth(context: BenchContext): number {
  return context.quick ? 50_000 : 1_000_000
}

export interface FilledStore {
  readonly path: string
  /** The growth of the process that filled it, in bytes, after a collection. */
  readonly rssAddedBytes: number
}

const filled = new WeakMap<Subject, Promise<FilledStore>>()

/** A closed store with {@link depth} waiting messages; created once for each subject and shared by the rows. */
export function filledStore(context: BenchContext, subject: Subject): Promise<FilledStore> {
  const store = filled.get(subject) ?? fill(context, subject)
  filled.set(subject, store)
  return store
}

async function fill(context: BenchContext, subject: Subject): Promise<FilledStore> {
  context.log(`storing ${depth(context).toLocaleString('en')} messages (${subject.label})`)
  const path = newFolder(context)
  await using worker = startWorker(context, 'broker', subject)
  await worker.call('open', { path })
  // The same traffic runs first, because V8's young generation grows with it; but with few messages at a time, so that
  // the baseline excludes the memory of waiting messages, which the allocator keeps.
  for (let stored = 0; stored < depth(context); stored += WARM_UP_MESSAGES) {
    await worker.call('fill', { channel: FILLED_CHANNEL, count: WARM_UP_MESSAGES, bytes: 1024 })
    await worker.call('purge', { channel: FILLED_CHANNEL })
  }
  const before = await worker.rssBytes()
  await worker.call('fill', { channel: FILLED_CHANNEL, count: depth(context), bytes: 1024 })
  const rssAddedBytes = (await worker.rssBytes()) - before
  const waiting = await worker.call<number>('waiting', { channel: FILLED_CHANNEL })
  if (waiting !== depth(context)) throw new Error(`the store must hold ${depth(context)} messages, it holds ${waiting}`)
  return { path, rssAddedBytes }
}
