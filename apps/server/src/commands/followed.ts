import type { Subscription } from '@signalbox/client'
import { SignalboxError } from '@signalbox/client'

import type { CommandCall } from './command.ts'
import { warn } from './command-io.ts'
import { messageOf } from './connection.ts'
import type { ExitCode } from './exit-codes.ts'
import { EXIT } from './exit-codes.ts'

/** The callbacks of a subscription that a command follows. */
export interface Followed {
  /** Reports an error that the subscription survives. */
  readonly onError: (error: unknown) => void
  /** Counts a message that was printed. */
  readonly counted: () => void
  /** Aborts when the command ends. */
  readonly signal: AbortSignal
}

/** Prints messages until Ctrl-C, the number of `--max`, or the silence of `--wait`. */
export async function follow(
  call: CommandCall,
  what: string,
  open: (followed: Followed) => Subscription,
): Promise<ExitCode> {
  const { line, io } = call
  const max = line.whole('max', 1, 1_000_000_000) ?? Infinity
  const waitMs = line.time('wait')
  const ended = Promise.withResolvers<ExitCode>()
  const stop = new AbortController()
  const say = (text: string): void => void warn(io, `signalbox ${line.command}: ${text}`)
  let count = 0
  let ready = false
  const timer =
    waitMs === undefined ? undefined : setTimeout(() => ended.resolve(count === 0 ? EXIT.NOTHING : EXIT.OK), waitMs)
  io.signal.addEventListener('abort', () => ended.resolve(EXIT.OK), { once: true })
  const subscription = open({
    signal: stop.signal,
    counted() {
      timer?.refresh()
      if (++count >= max) ended.resolve(EXIT.OK)
    },
    onError(error) {
      // A server that was never reached is an error. One that was lost may come back.
      if (!ready && error instanceof SignalboxError && error.code === 'UNREACHABLE') ended.reject(error)
      else if (!io.signal.aborted && !stop.signal.aborted) say(messageOf(error))
    },
  })
  subscription.closed.then(() => ended.resolve(EXIT.OK), ended.reject)
  subscription.ready.then(
    () => {
      ready = true
      if (!io.signal.aborted && !stop.signal.aborted) say(`waiting for messages of ${what}; Ctrl-C ends`)
    },
    () => {},
  )
  try {
    return await ended.promise
  } finally {
    clearTimeout(timer)
    stop.abort()
    await subscription.close()
  }
}
