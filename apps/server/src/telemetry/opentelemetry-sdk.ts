import { diag, DiagLogLevel } from '@opentelemetry/api'
import type { TextMapPropagator } from '@opentelemetry/api'
import { CompositePropagator, setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core'
import { B3InjectEncoding, B3Propagator } from '@opentelemetry/propagator-b3'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import type { Sampler } from '@opentelemetry/sdk-trace-base'
import { messageOf } from '@signalbox/broker-core/internal'
import { EarlyDecision, openTelemetry } from '@signalbox/broker-core/opentelemetry'

import type { Logger } from '../logging/logger.ts'
import { VERSION } from '../version.ts'
import type { Environment, Telemetry, TelemetrySettings } from './telemetry.ts'
import { ThreadExporter } from './thread-exporter.ts'

/** The time to export the last spans at a shutdown, in ms. */
const LAST_SPANS_MS = 2_000

/** The time between two warnings about failed exports, in ms. */
const WARN_MS = 60_000

/** Opens the export of traces over OTLP. The SDK reads the endpoint, the headers and the sizes of batches from `OTEL_*`. */
export function openTelemetrySdk(
  settings: TelemetrySettings,
  {
    node,
    destinations,
    log,
    env,
  }: {
    readonly node: string
    readonly destinations: readonly string[]
    readonly log: Logger
    readonly env: Environment
  },
): Telemetry {
  warnAtMostOnceAMinute(log)
  const resource = resourceFromAttributes({
    'service.name': 'signalbox',
    'service.version': VERSION,
    'service.instance.id': node,
  }).merge(detectResources({ detectors: [envDetector] }))
  const exporter = new ThreadExporter(settings.protocol, env)
  const decision = new EarlyDecision(samplerOf(settings))
  const provider = new BasicTracerProvider({
    resource,
    sampler: decision.sampler,
    idGenerator: decision.ids,
    spanProcessors: [new BatchSpanProcessor(exporter)],
  })
  const tracer = provider.getTracer('signalbox', VERSION)
  const propagator = new CompositePropagator({ propagators: settings.propagators.flatMap(propagatorOf) })
  return {
    tracing: openTelemetry({ tracer, propagator, destinations, decision }),
    async [Symbol.asyncDispose]() {
      const late = AbortSignal.timeout(LAST_SPANS_MS)
      const isLate = new Promise<void>((resolve) => late.addEventListener('abort', () => resolve(), { once: true }))
      await Promise.race([provider.shutdown().catch(() => {}), isLate])
      await exporter[Symbol.asyncDispose]()
    },
  }
}

function samplerOf({ sampler, ratio }: TelemetrySettings): Sampler {
  const [, kind = sampler] = /^parentbased_(.+)$/.exec(sampler) ?? []
  const root =
    kind === 'always_on'
      ? new AlwaysOnSampler()
      : kind === 'always_off'
        ? new AlwaysOffSampler()
        : new TraceIdRatioBasedSampler(ratio)
  return kind === sampler ? root : new ParentBasedSampler({ root })
}

/** Baggage has no propagator: it is passed on to agents as it came, and is never recorded. */
function propagatorOf(name: TelemetrySettings['propagators'][number]): readonly TextMapPropagator[] {
  if (name === 'tracecontext') return [new W3CTraceContextPropagator()]
  if (name === 'b3') return [new B3Propagator()]
  if (name === 'b3multi') return [new B3Propagator({ injectEncoding: B3InjectEncoding.MULTI_HEADER })]
  return []
}

/** Logs failed exports. The spans are lost; nothing else is. */
function warnAtMostOnceAMinute(log: Logger): void {
  let warnedAt = -Infinity
  let unreported = 0
  const warn = (reason: string): void => {
    const now = performance.now()
    if (now - warnedAt < WARN_MS) {
      unreported++
      return
    }
    warnedAt = now
    log.warn({ reason, unreported }, 'traces could not be exported; their spans are lost')
    unreported = 0
  }
  setGlobalErrorHandler((error) => warn(messageOf(error)))
  const report = (text: string, ...rest: readonly unknown[]): void => warn([text, ...rest].map(String).join(' '))
  diag.setLogger({ verbose: quiet, debug: quiet, info: quiet, warn: report, error: report }, DiagLogLevel.WARN)
}

function quiet(): void {}
