import type { ErrorListener } from './report.ts'
import type { Transport } from './transport.ts'

/** A long-running part of a client, which ends with the client. */
export interface Running {
  close(): Promise<void>
}

/** The parts of a client that its channels share. */
export interface ClientContext {
  readonly transport: Transport
  /** The `source` of events that this client sends. */
  readonly source: string
  /** The `type` of events that this client sends. */
  readonly type: string
  readonly silenceMs: number
  /** The time for which a send to a queue or a store is repeated, in ms. */
  readonly retryForMs: number
  readonly onError: ErrorListener
  /** Aborts when the client is closed. */
  readonly signal: AbortSignal
  /** Parts to close with the client. */
  readonly running: Set<Running>
}

/** Returns a signal that aborts with the client, and with the caller's signal. */
export function callSignal(context: ClientContext, signal: AbortSignal | undefined): AbortSignal {
  return signal === undefined ? context.signal : AbortSignal.any([context.signal, signal])
}
