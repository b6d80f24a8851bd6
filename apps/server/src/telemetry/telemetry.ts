import type { Tracing } from '@signalbox/broker-core'

import { HIDDEN } from '../config/settings.ts'
import { ServerError } from '../errors.ts'
import type { Logger } from '../logging/logger.ts'

/** The export of traces. */
export interface Telemetry extends AsyncDisposable {
  readonly tracing: Tracing
}

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] as const

const PROTOCOLS = ['http/protobuf', 'http/json'] as const

/** The samplers of the OpenTelemetry specification: with and without regard for the decision of the caller. */
export const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

export const PROPAGATORS = ['tracecontext', 'baggage', 'b3', 'b3multi', 'none'] as const

/** The settings of the export of traces. The OpenTelemetry SDK itself reads the others: those of batches from the process. */
export interface TelemetrySettings {
  readonly protocol: (typeof PROTOCOLS)[number]
  readonly sampler: (typeof SAMPLERS)[number]
  /** The part of all traces that the samplers with a ratio record, 0 to 1. */
  readonly ratio: number
  readonly propagators: readonly (typeof PROPAGATORS)[number][]
}

/**
 * Reads the standard variables of OpenTelemetry. Returns undefined if they do not switch the export of traces on.
 * @throws ServerError CONFIG_INVALID for a value that the export cannot follow
 */
function telemetrySettings(env: Environment): TelemetrySettings | undefined {
  if (!isOn(env)) return undefined
  const problems: string[] = []
  const read = <Value extends string>(name: string, allowed: readonly Value[], byDefault: Value): Value => {
    const given = env[name]?.trim() || byDefault
    const value = allowed.find((each) => each === given)
    if (value === undefined)
      problems.push(`${name}: ${JSON.stringify(given)} is not allowed; allowed: ${allowed.join(', ')}`)
    return value ?? byDefault
  }
  const ofTraces = 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'
  const protocol = read(env[ofTraces]?.trim() ? ofTraces : 'OTEL_EXPORTER_OTLP_PROTOCOL', PROTOCOLS, 'http/protobuf')
  const sampler = read('OTEL_TRACES_SAMPLER', SAMPLERS, 'parentbased_always_on')
  const argument = env['OTEL_TRACES_SAMPLER_ARG']?.trim() || '1'
  const ratio = Number(argument)
  if (sampler.endsWith('traceidratio') && !(ratio >= 0 && ratio <= 1)) {
    problems.push(`OTEL_TRACES_SAMPLER_ARG: ${JSON.stringify(argument)} is not allowed; allowed: a number from 0 to 1`)
  }
  const names = (env['OTEL_PROPAGATORS']?.trim() || 'tracecontext,baggage').split(',')
  const propagators = names.flatMap((name) => {
    const known = PROPAGATORS.find((each) => each === name.trim())
    if (known !== undefined) return known
    problems.push(`OTEL_PROPAGATORS: ${JSON.stringify(name.trim())} is not allowed; allowed: ${PROPAGATORS.join(', ')}`)
    return []
  })
  for (const name of ENDPOINTS) {
    const address = env[name]?.trim()
    if (!address || /^https?:$/.test(URL.parse(address)?.protocol ?? '')) continue
    problems.push(`${name}: ${JSON.stringify(address)} is not allowed; allowed: an address of http or https`)
  }
  if (problems.length > 0) throw new ServerError('CONFIG_INVALID', problems)
  return { protocol, sampler, ratio, propagators }
}

/**
 * Opens the export of traces if the standard variables of OpenTelemetry switch it on. A server without them does not
 * load the SDK.
 * @throws ServerError CONFIG_INVALID
 */
export async function openTelemetry(
  env: Environment,
  parts: { readonly node: string; readonly destinations: readonly string[]; readonly log: Logger },
): Promise<Telemetry | undefined> {
  const settings = telemetrySettings(env)
  if (settings === undefined) return undefined
  const { openTelemetrySdk } = await import('./opentelemetry-sdk.ts')
  return openTelemetrySdk(settings, { ...parts, env })
}

/** Other exporters than OTLP do not exist here: one that other programs of the host use switches nothing on. */
function isOn(env: Environment): boolean {
  if (env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return false
  const exporters = (env['OTEL_TRACES_EXPORTER'] ?? '').split(',').map((name) => name.trim())
  if (exporters.includes('otlp')) return true
  return ENDPOINTS.some((name) => env[name]) && exporters.every((name) => name === '')
}

/** Variables whose values contain credentials. */
const SECRET = /HEADERS$/

/** Returns the variables of OpenTelemetry that are set, one in a line. Credentials are masked. */
export function telemetryText(env: Environment): string {
  return Object.keys(env)
    .filter((name) => name.startsWith('OTEL_'))
    .sort()
    .map((name) => `# ${name}: ${SECRET.test(name) ? HIDDEN : JSON.stringify(env[name])}\n`)
    .join('')
}
