import type { BrokerHandle, Subscription } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'

import type { AgentRequests } from '../requests/agent-requests.ts'
import type { RunChunk, RunLog } from './run-log.ts'
import { decodeFrame, streamChannel } from '../stream/link/messages.ts'

export interface RunChunksParts {
  readonly system: BrokerHandle
  readonly log: RunLog
  readonly requests: Pick<AgentRequests, 'resume'>
  /** The time without a sign of the node that writes a run after which it may be lost, in ms. */
  readonly silenceMs: number
}

/** A run to read. */
export interface ReadRun {
  readonly run: string
  readonly agentId: string
  readonly clientId: string
  readonly account: string
  /** True for a run that has begun, so that its first chunk will come. */
  readonly isExpected: boolean
  /** True if it is certain that no node writes the run. @default false */
  readonly isLeft?: boolean | undefined
}

/** The time after which the log is read without any news of a run, in ms. */
const POLL_MS = 5_000

/** The longest time between two requests to continue a silent run, in ms. */
const MAX_RESUME_MS = 300_000

/** Returns the chunk after another one; if `mayBeRemoved`, chunks between them may have been removed. */
async function nextChunk(
  log: RunLog,
  run: string,
  last: RunChunk | undefined,
  mayBeRemoved: boolean,
): Promise<RunChunk | undefined> {
  if (last === undefined) return log.first(run)
  const next = await log.read(run, last.number + 1)
  if (next !== undefined || !mayBeRemoved) return next
  const first = await log.first(run)
  return first !== undefined && first.number > last.number ? first : undefined
}

/**
 * Returns the chunks of a run, and waits for those that are still to be written. It ends after the last chunk, or at
 * once if the log has none. A run that its node has left is continued by another.
 * @throws BrokerError ENGINE_UNAVAILABLE; the reason of the signal
 */
export async function* runChunks(
  { system, log, requests, silenceMs }: RunChunksParts,
  { account, agentId, clientId, isExpected, isLeft: isKnownLeft = false, run }: ReadRun,
  signal: AbortSignal,
): AsyncGenerator<RunChunk> {
  let subscription: Subscription | undefined
  let news = Promise.withResolvers<void>()
  let heard = performance.now()
  let patienceMs = silenceMs
  let isLeft = isKnownLeft
  let misses = 0
  const wake = (): void => news.resolve()
  signal.addEventListener('abort', wake)
  try {
    for (let last: RunChunk | undefined; ;) {
      signal.throwIfAborted()
      news = Promise.withResolvers()
      // News of a run whose next chunk is missing say that it was removed.
      const chunk = await nextChunk(log, run, last, misses > 1)
      if (chunk !== undefined) {
        misses = 0
        yield chunk
        if (chunk.end) return
        last = chunk
        patienceMs = silenceMs
        continue
      }
      if (last === undefined && !isExpected) return
      misses++
      if (subscription === undefined) {
        subscription = await system.events.subscribe(streamChannel(run), {}, (message) => {
          heard = performance.now()
          const frame = decodeFrame(message)
          isLeft ||= frame?.kind === 'heartbeat' && frame.isLeft === true
          wake()
        })
        // A chunk may have been written meanwhile.
        continue
      }
      const timer = setTimeout(wake, POLL_MS)
      await news.promise
      clearTimeout(timer)
      if (signal.aborted || (!isLeft && performance.now() - heard < patienceMs)) continue
      isLeft = false
      heard = performance.now()
      patienceMs = Math.min(patienceMs * 2, MAX_RESUME_MS)
      const caller = { clientId: last?.callerId ?? clientId, account }
      await requests.resume(agentId, run, caller).catch((error: unknown) => {
        // It is asked again.
        if (!isBrokerError(error)) throw error
      })
    }
  } finally {
    signal.removeEventListener('abort', wake)
    await subscription?.close()
  }
}
