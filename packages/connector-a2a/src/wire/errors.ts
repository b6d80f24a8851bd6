import type { JsonObject } from '@signalbox/http-kit'
import type { WireVersion } from '@signalbox/registry'

/** Translates a JSON-RPC error of an agent. */
export function translateError(from: WireVersion, to: WireVersion, error: JsonObject): JsonObject {
  return from === to ? error : { ...error }
}
