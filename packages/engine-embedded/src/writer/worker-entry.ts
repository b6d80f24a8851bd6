// oxlint-disable unicorn/require-post-message-target-origin -- a worker thread has no origin
// Not a named import: an older Node, without this function, would fail before supported-node.ts.
import module from 'node:module'
import { dirname } from 'node:path'
import v8 from 'node:v8'
import { Worker } from 'node:worker_threads'

import type { WriterSettings, WriterThreadData } from './thread-messages.ts'

/**
 * Node strips types with a WebAssembly module, one instance per thread. After 1,000 calls V8 compiles the imports of
 * such instances to code that all threads share. When several threads start and end at the same time, V8 sometimes
 * frees a part of that code twice and aborts the process (`Check failed: jit_page.has_value()`, seen in Node 24.21 once
 * in some thousand threads). With this budget, in calls, V8 never compiles it. Code that runs as `.js` does not need
 * it.
 */
const NO_WRAPPER_TIER_UP = '--wasm-wrapper-tiering-budget=2147483647'

/** A thread that waits for its settings. */
let prepared: Worker | undefined

/**
 * Starts a writer thread for the next store to open. A thread needs about 100 ms to start, and no store. It does not
 * keep the process alive.
 */
export function prepareWriterThread(): void {
  if (!prepared) keep(newThread())
}

/**
 * Keeps a thread whose store was closed for the next store to open: a process that opens many, as tests do, starts one
 * thread. If one waits already, the thread ends.
 */
export function returnWriterThread(thread: Worker): void {
  if (prepared) void thread.terminate()
  else keep(thread)
}

function keep(thread: Worker): void {
  thread.unref()
  // A thread that fails before its store is opened must not end the process; the next store starts another one.
  thread.once('error', forget)
  thread.once('exit', forget)
  prepared = thread
}

function forget(): void {
  prepared = undefined
}

/** Returns a running writer thread: the prepared one, or a new one. */
export function startWriterThread(settings: WriterSettings): Worker {
  const thread = prepared ?? newThread()
  prepared = undefined
  thread.off('error', forget)
  thread.off('exit', forget)
  thread.ref()
  thread.postMessage(settings)
  return thread
}

/**
 * Starts a thread from `.ts` when this file runs from source, with the condition that also selects the source of the
 * workspace's other packages; from `.js` when it was built. No other code depends on that difference.
 */
function newThread(): Worker {
  const source = import.meta.url.endsWith('.ts')
  if (source) v8.setFlagsFromString(NO_WRAPPER_TIER_UP)
  const cache = module.getCompileCacheDir()
  const data: WriterThreadData = { compileCache: cache === undefined ? undefined : dirname(cache) }
  return new Worker(new URL(source ? './writer-thread.ts' : './writer-thread.js', import.meta.url), {
    name: 'signalbox-writer',
    workerData: data,
    execArgv: source ? ['--conditions=@signalbox/source'] : [],
  })
}
