import type { Logger } from '../logging/logger.ts'
import type { Telemetry } from './opentelemetry-sdk.ts'
import type { Environment } from './telemetry-settings.ts'
import { telemetrySettings } from './telemetry-settings.ts'

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
  return openTelemetrySdk(settings, parts)
}
