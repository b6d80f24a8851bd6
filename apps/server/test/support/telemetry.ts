import type { Context, Tracer } from '@opentelemetry/api'
import { context, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import type { ExportedSpan } from '@signalbox/testkit/otlp-receiver'
import { OtlpReceiver } from '@signalbox/testkit/otlp-receiver'
import { onTestFinished, vi } from 'vitest'

import type { PartialConfig } from '../../src/config/load.ts'
import type { RunningServer } from '../../src/server.ts'
import type { Environment } from '../../src/telemetry/telemetry.ts'
import { serve } from './server.ts'

export type Protocol = 'http/protobuf' | 'http/json'

/** Opens an endpoint of OTLP, and sets the variables of OpenTelemetry for the servers that the test starts. */
export async function openOtlp(
  more: Environment = {},
): Promise<{ readonly otlp: OtlpReceiver; readonly env: Environment }> {
  const otlp = await OtlpReceiver.open()
  onTestFinished(() => otlp[Symbol.asyncDispose]())
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url, OTEL_BSP_SCHEDULE_DELAY: '20', ...more }
  // The SDK reads some of them from the process.
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
  return { otlp, env }
}

/** Starts a server that exports traces. */
export async function serveTraced(
  partial: PartialConfig = {},
  more: Environment = {},
): Promise<{ readonly server: RunningServer; readonly otlp: OtlpReceiver }> {
  const { otlp, env } = await openOtlp(more)
  return { server: await serve(partial, env), otlp }
}

/** Sets up the OpenTelemetry SDK for the programs in this process. Returns a function that returns the tracer of a service. */
export function programs(otlp: OtlpReceiver): (service: string) => Tracer {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  onTestFinished(() => {
    context.disable()
    propagation.disable()
  })
  return (service) => {
    const exporter = new OTLPTraceExporter({ url: `${otlp.url}/v1/traces` })
    const provider = new BasicTracerProvider({
      resource: resourceFromAttributes({ 'service.name': service }),
      spanProcessors: [new SimpleSpanProcessor(exporter)],
    })
    onTestFinished(() => provider.shutdown())
    return provider.getTracer(service)
  }
}

/** Runs in a span of a program, which is the root of a trace unless there is an active span or a parent. */
export function inSpan<T>(
  tracer: Tracer,
  name: string,
  run: () => Promise<T>,
  parent: Context = context.active(),
): Promise<T> {
  return tracer.startActiveSpan(name, {}, parent, async (span) => {
    try {
      return await run()
    } finally {
      span.end()
    }
  })
}

/** The headers, or the members of `_meta`, of the active span. */
export function activeHeaders(): Record<string, string> {
  const headers: Record<string, string> = {}
  propagation.inject(context.active(), headers)
  return headers
}

export function activeTraceId(): string {
  return trace.getSpanContext(context.active())?.traceId ?? ''
}

/** A trace, as a tracing system shows it. */
export interface Shape {
  readonly spans: readonly ExportedSpan[]
  readonly roots: readonly string[]
  /** Spans whose parent was not exported. */
  readonly orphans: readonly string[]
  /** The names of the other traces' spans. */
  readonly elsewhere: readonly string[]
  /** Returns the names from the root to the first span with a name, with the service of those that are not the server's. */
  path(name: string): readonly string[]
}

function label({ name, service }: ExportedSpan): string {
  return service === 'signalbox' ? name : `${service}: ${name}`
}

export function shapeOf(all: readonly ExportedSpan[], traceId: string): Shape {
  const spans = all.filter((span) => span.traceId === traceId)
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  return {
    spans,
    roots: spans.filter(({ parentSpanId }) => parentSpanId === undefined).map(label),
    orphans: spans.filter(({ parentSpanId }) => parentSpanId !== undefined && !byId.has(parentSpanId)).map(label),
    elsewhere: [...new Set(all.filter((span) => span.traceId !== traceId).map(label))].toSorted(),
    path(name) {
      const path: string[] = []
      let span = spans.find((each) => label(each) === name)
      while (span !== undefined) {
        path.unshift(label(span))
        span = byId.get(span.parentSpanId ?? '')
      }
      return path
    },
  }
}
