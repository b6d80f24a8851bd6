import { enableCompileCache } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'

import type { WriterSettings, WriterThreadData } from './thread-messages.ts'

const { compileCache }: WriterThreadData = workerData
// A thread does not inherit the cache, and its modules are half of its start.
if (compileCache !== undefined) enableCompileCache(compileCache)
const { runWriter } = await import('./run-writer.ts')

function serveNextStore(): void {
  parentPort?.once('message', (settings: WriterSettings) => runWriter(settings, serveNextStore))
}

serveNextStore()
