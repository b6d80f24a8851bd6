import { readlinkSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { availableParallelism, getPriority, setPriority } from 'node:os'
import process from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'

import type { WriterSettings, WriterThreadData } from './thread-messages.ts'

/** The niceness of the thread above that of its process. */
const NICENESS = 10
const LAST_NICENESS = 19

/**
 * Lets the event loop run first if the process has one core: otherwise requests wait for milliseconds until the writer has
 * applied a group. With several cores the writer would lose against other busy programs, and gain nothing. Only on Linux does a thread have its own priority.
 */
function yieldToEventLoop(): void {
  if (process.platform !== 'linux' || availableParallelism() > 1) return
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, Math.min(LAST_NICENESS, getPriority(thread) + NICENESS))
  } catch {
    // A sandbox hides /proc, or forbids the call: the writer keeps the priority of the process.
  }
}

yieldToEventLoop()

const { compileCache }: WriterThreadData = workerData
// A thread does not inherit the cache, and its modules are half of its start.
if (compileCache !== undefined) enableCompileCache(compileCache)
const { runWriter } = await import('./run-writer.ts')

function serveNextStore(): void {
  parentPort?.once('message', (settings: WriterSettings) => runWriter(settings, serveNextStore))
}

serveNextStore()
