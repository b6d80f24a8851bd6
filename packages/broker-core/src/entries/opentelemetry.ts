/** The tracing of a broker with the API of OpenTelemetry. Needs the package `@opentelemetry/api`. */
export { EarlyDecision, openTelemetry, ownDecision } from '../tracing/opentelemetry.ts'
export type { OpenTelemetryOptions } from '../tracing/opentelemetry.ts'
