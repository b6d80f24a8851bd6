import v8 from 'node:v8'
import { Worker } from 'node:worker_threads'

import type { WriterSettings } from './thread-messages.ts'

/**
 * Node strips types with a WebAssembly module, one instance for each thread. V8 compiles what such instances import after
 * 1,000 calls, into code that all threads share, and when several threads come and go at once it now and then frees a
 * piece of it twice and aborts the whole process (`Check failed: jit_page.has_value()`, seen in Node 24.21 once in some
 * thousand threads). With this budget, in calls, it does not compile it at all. What runs as `.js` has no use for it.
 */
const NO_WRAPPER_TIER_UP = '--wasm-wrapper-tiering-budget=2147483647'

/**
 * Starts the writer thread: from `.ts` when this file runs from source, with the condition that selects source in the
 * workspace's other packages too, and from `.js` when it was built. The one place that knows the difference.
 */
export function startWriterThread(settings: WriterSettings): Worker {
  const source = import.meta.url.endsWith('.ts')
  if (source) v8.setFlagsFromString(NO_WRAPPER_TIER_UP)
  return new Worker(new URL(source ? './writer-thread.ts' : './writer-thread.js', import.meta.url), {
    name: 'signalbox-writer',
    workerData: settings,
    execArgv: source ? ['--conditions=@signalbox/source'] : [],
  })
}
