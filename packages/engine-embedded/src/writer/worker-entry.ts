import v8 from 'node:v8'
import { Worker } from 'node:worker_threads'

import type { WriterSettings } from './thread-messages.ts'

/**
 * Node strips types with a WebAssembly module, one instance per thread. After 1,000 calls V8 compiles the imports of
 * such instances to code that all threads share. When several threads start and end at the same time, V8 sometimes
 * frees a part of that code twice and aborts the process (`Check failed: jit_page.has_value()`, seen in Node 24.21 once
 * in some thousand threads). With this budget, in calls, V8 never compiles it. Code that runs as `.js` does not need
 * it.
 */
const NO_WRAPPER_TIER_UP = '--wasm-wrapper-tiering-budget=2147483647'

/**
 * Starts the writer thread: from `.ts` when this file runs from source, with the condition that also selects the source
 * of the workspace's other packages; from `.js` when it was built. No other code depends on that difference.
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
