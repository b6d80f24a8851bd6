import v8 from 'node:v8'
import type { WorkerOptions } from 'node:worker_threads'
import { Worker } from 'node:worker_threads'

/** Options of {@link startThread}. */
export interface ThreadOptions extends Pick<WorkerOptions, 'workerData' | 'env'> {
  /** The name of the thread, for tools that list threads. */
  readonly name: string
}

/**
 * Node strips types with a WebAssembly module, one instance per thread. After 1,000 calls V8 compiles the imports of
 * such instances to code that all threads share. When several threads start and end at the same time, V8 sometimes
 * frees a part of that code twice and aborts the process (`Check failed: jit_page.has_value()`, seen in Node 24.21 once
 * in some thousand threads). With this budget, in calls, V8 never compiles it. Code that runs as `.js` does not need
 * it.
 */
const NO_WRAPPER_TIER_UP = '--wasm-wrapper-tiering-budget=2147483647'

/**
 * Starts a thread: from `.ts` if the module runs from source, with the condition that also selects the source of the
 * workspace's other packages; from `.js` if it was built. No other code depends on that difference.
 * @param entry The name of the thread's file, without its extension; it is in the folder of the module
 * @param module The `import.meta.url` of the module
 */
export function startThread(entry: string, module: string, options: ThreadOptions): Worker {
  const source = module.endsWith('.ts')
  if (source) v8.setFlagsFromString(NO_WRAPPER_TIER_UP)
  return new Worker(new URL(`./${entry}${source ? '.ts' : '.js'}`, module), {
    ...options,
    execArgv: source ? ['--conditions=@signalbox/source'] : [],
  })
}
