import type { TraceContext } from './cloud-event.ts'
import type { SendBatches } from './send-batches.ts'
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
  /** The sends to queues and events stores. */
  readonly sends: SendBatches
  readonly onError: ErrorListener
  readonly runInTrace: RunInTrace
  /** Aborts when the client is closed. */
  readonly signal: AbortSignal
  /** Parts to close with the client. */
  readonly running: Set<Running>
}

/** The headers of a trace: those of W3C Trace Context, and baggage, which only agents get. */
export interface TraceHeaders extends Partial<TraceContext> {
  readonly baggage?: string | undefined
}

export const NO_TRACE: TraceHeaders = {}

/** Runs a function in the trace that the headers describe; outside of any trace if there are none. */
export type RunInTrace = <T>(headers: TraceHeaders, run: () => T) => T

/** Returns a signal that aborts with the client, and with the caller's signal. */
export function callSignal(context: ClientContext, signal: AbortSignal | undefined): AbortSignal {
  return signal === undefined ? context.signal : AbortSignal.any([context.signal, signal])
}

/** Receives errors that no call can throw: of handlers, and of connections that are made again. */
export type ErrorListener = (error: unknown) => void

/** Writes one line for an error; the default of `onError`. */
export function reportError(error: unknown): void {
  // oxlint-disable-next-line no-console -- an error of a handler must not disappear where the caller takes no errors
  console.error('signalbox client:', error)
}
