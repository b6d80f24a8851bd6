import { BrokerError } from '../errors.ts'
import { parseJsonText } from '../json-text.ts'
import type { QueueMessage } from '../message.ts'
import { decodeText } from '../message.ts'

/** A message that a handler works on. */
export interface WorkMessage extends QueueMessage {
  /** Returns the body as text. @throws BrokerError MESSAGE_INVALID if it is not UTF-8 */
  text(): string
  /** Returns the body, parsed as JSON. @throws BrokerError MESSAGE_INVALID if it is not JSON */
  json(): unknown
}

/** The circumstances of a message that a handler works on. */
export interface Work {
  /** The number of times that the message was received, this time included. */
  readonly receives: number
  /** Aborts when the lease is lost, or when a drain runs out of time: stop then, another worker gets the message. */
  readonly signal: AbortSignal
  /**
   * Moves the message to its dead-letter queue, because no other attempt can succeed. The outcome of the handler then
   * has no effect.
   * @throws BrokerError NO_DEAD_LETTER_QUEUE; LeaseLost
   */
  reject(): Promise<void>
}

/** Works on a message. The message is acknowledged when the promise resolves, and returns to the queue if it rejects. */
export type WorkHandler = (message: WorkMessage, work: Work) => unknown

export interface WorkOptions {
  /** Messages that are worked on at the same time, 1 to 1,000. @default 1 */
  readonly concurrency?: number
  /** The lease of a message, 100 ms to 12 h. It is renewed while the handler runs. @default '30s' */
  readonly lease?: Duration
  /**
   * The time until a failed message can be received again, by its number of receives. @default the retry policy of the
   * queue; without one 1 s, doubled each time, at most 5 min
   */
  readonly backoff?: (receives: number) => Duration
  /** The time that `drain` waits if the signal ends the pool. @default '25s' */
  readonly drainTimeout?: Duration
  /** Drains the pool. */
  readonly signal?: AbortSignal
  /** Receives errors of the handler and of the engine, both of which are tried again. @default one line on stderr */
  readonly onError?: (error: unknown) => void
}

/** The lease of a message ended before the message was settled: the message is delivered again. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** Returns a message with the methods that read its body. */
export function workMessage(message: QueueMessage): WorkMessage {
  const text = (): string => {
    const decoded = decodeText(message.body)
    if (decoded === undefined) throw unreadable(message.id, 'text in UTF-8')
    return decoded
  }
  return {
    ...message,
    text,
    json: () => {
      try {
        return parseJsonText(text())
      } catch {
        throw unreadable(message.id, 'JSON')
      }
    },
  }
}

function unreadable(id: string, form: string): BrokerError {
  return new BrokerError('MESSAGE_INVALID', `the body of message ${id} is not ${form}`, { field: 'body' })
}

/** A time: a number of milliseconds, or a text such as `250ms`, `5s`, `2m`, `1h`, `1d`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]

/** Returns a duration in whole ms within a range. @throws BrokerError ARGUMENT_INVALID */
export function durationMs(argument: string, duration: Duration, min: number, max: number): number {
  const ms = Math.ceil(typeof duration === 'number' ? duration : textMs(duration))
  if (ms >= min && ms <= max) return ms
  const allowed = `${min} to ${max} ms as a number, or a text such as "250ms", "5s", "2m"`
  throw new BrokerError(
    'ARGUMENT_INVALID',
    `invalid argument ${argument}: ${JSON.stringify(duration)}; allowed is ${allowed}`,
    { argument, allowed },
  )
}

function textMs(text: unknown): number {
  if (typeof text !== 'string') return Number.NaN
  const unit = UNITS.find(([name]) => text.endsWith(name) && /^[0-9]+(?:\.[0-9]+)?$/.test(text.slice(0, -name.length)))
  return unit === undefined ? Number.NaN : Number(text.slice(0, -unit[0].length)) * unit[1]
}
