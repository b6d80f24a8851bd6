import { Worker } from 'node:worker_threads'

import type { WriterSettings } from './operations.ts'

/**
 * Starts the writer thread: from `.ts` when this file runs from source, with the condition that selects source in the
 * workspace's other packages too, and from `.js` when it was built. The one place that knows the difference.
 */
export function startWriterThread(settings: WriterSettings): Worker {
  const source = import.meta.url.endsWith('.ts')
  return new Worker(new URL(source ? './writer-thread.ts' : './writer-thread.js', import.meta.url), {
    name: 'signalbox-writer',
    workerData: settings,
    execArgv: source ? ['--conditions=@signalbox/source'] : [],
  })
}
