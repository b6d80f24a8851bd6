import type { Worker } from 'node:worker_threads'

import { diag } from '@opentelemetry/api'
import type { ExportResult } from '@opentelemetry/core'
import { ExportResultCode } from '@opentelemetry/core'
import { JsonTraceSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base'
import { messageOf, startThread } from '@signalbox/broker-core/internal'

import type { Environment, TelemetrySettings } from './telemetry.ts'

// oxlint-disable unicorn/require-post-message-target-origin -- a thread has no origin

/** A request of OTLP that the thread sends. */
export interface ExportedBatch {
  readonly id: number
  readonly bytes: Uint8Array
}

/** A report of the thread: the end of one export, or a warning for the operator. */
export type Exported = { readonly id: number; readonly failure: string | undefined } | { readonly warning: string }

const FORMATS = {
  'http/json': { type: 'application/json', serializer: JsonTraceSerializer },
  'http/protobuf': { type: 'application/x-protobuf', serializer: ProtobufTraceSerializer },
}

/**
 * Exports spans from a separate thread, which starts with the first export. An HTTP client in the server's own thread
 * slows the server down by more than the requests of the client cost: both use `node:http`, and its code is then
 * compiled for both.
 */
export class ThreadExporter implements SpanExporter, AsyncDisposable {
  readonly #format: (typeof FORMATS)[TelemetrySettings['protocol']]
  readonly #pending = new Map<number, (result: ExportResult) => void>()
  readonly #env: NodeJS.Dict<string>
  #thread: Worker | undefined
  #lastId = 0
  #onIdle = (): void => {}

  /** @param env The variables that the thread reads, in addition to those of the process */
  constructor(protocol: TelemetrySettings['protocol'], env: Environment) {
    this.#format = FORMATS[protocol]
    this.#env = { ...process.env, ...env }
  }

  export(spans: ReadableSpan[], onResult: (result: ExportResult) => void): void {
    const bytes = this.#format.serializer.serializeRequest(spans)
    if (bytes === undefined) return onResult(failed('the spans could not be written'))
    const id = ++this.#lastId
    this.#pending.set(id, onResult)
    this.#thread ??= this.#start()
    // The process stays until the spans are exported, and no longer.
    this.#thread.ref()
    const batch: ExportedBatch = { id, bytes }
    this.#thread.postMessage(batch)
  }

  /** Waits for the exports under way. */
  async shutdown(): Promise<void> {
    if (this.#pending.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve))
  }

  /** Ends the thread. Batches that are not exported by then are lost. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#thread?.terminate()
  }

  #start(): Worker {
    const options = { name: 'signalbox-traces', workerData: this.#format.type, env: this.#env }
    const thread = startThread('export-thread', import.meta.url, options)
    thread.on('message', (message: Exported) => {
      if ('warning' in message) diag.warn(message.warning)
      else this.#end(message.id, message.failure)
    })
    thread.on('error', (cause) => diag.error(`The thread that exports spans ended: ${messageOf(cause)}`))
    thread.on('exit', () => {
      this.#thread = undefined
      for (const id of this.#pending.keys()) this.#end(id, 'the thread that exports spans ended')
    })
    return thread
  }

  #end(id: number, failure: string | undefined): void {
    const onResult = this.#pending.get(id)
    this.#pending.delete(id)
    onResult?.(failure === undefined ? { code: ExportResultCode.SUCCESS } : failed(failure))
    if (this.#pending.size > 0) return
    this.#thread?.unref()
    this.#onIdle()
  }
}

function failed(reason: string): ExportResult {
  return { code: ExportResultCode.FAILED, error: new Error(reason) }
}
