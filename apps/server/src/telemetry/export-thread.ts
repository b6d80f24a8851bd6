import { parentPort, workerData } from 'node:worker_threads'

import { diag, DiagLogLevel } from '@opentelemetry/api'
import { ExportResultCode } from '@opentelemetry/core'
import { convertLegacyHttpOptions, createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http'

import type { Exported, ExportedBatch } from './thread-exporter.ts'

// oxlint-disable unicorn/require-post-message-target-origin -- a thread has no origin

/**
 * The entry of the thread that sends batches of spans to the collector. The SDK reads the address, the headers, the
 * certificates, the compression and the time-outs from `OTEL_*`, and repeats what may be repeated.
 */
function main(): void {
  const port = parentPort
  if (port === null || typeof workerData !== 'string') return
  const post = (message: Exported): void => port.postMessage(message)
  const report = (text: string, ...rest: readonly unknown[]): void => {
    post({ warning: [text, ...rest].map(String).join(' ') })
  }
  diag.setLogger({ verbose: quiet, debug: quiet, info: quiet, warn: report, error: report }, DiagLogLevel.WARN)
  const options = convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', { 'Content-Type': workerData })
  const written = { serializeRequest: (bytes: Uint8Array) => bytes, deserializeResponse: () => undefined }
  const uncounted = { name: 'span', countItems: () => 0 } as const
  const delegate = createOtlpHttpExportDelegate(options, written, 'otlp_http_span_exporter', uncounted, undefined)
  port.on('message', ({ id, bytes }: ExportedBatch) => {
    delegate.export(bytes, ({ code, error }) => {
      post({ id, failure: code === ExportResultCode.SUCCESS ? undefined : (error?.message ?? 'the export failed') })
    })
  })
}

function quiet(): void {}

main()
