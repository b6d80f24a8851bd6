import { isJsonObject } from '@signalbox/http-kit'
import type { JsonObject } from '@signalbox/http-kit'

/** A scheme has flows, and a flow has values: nothing deeper is tagged. */
const MAX_DEPTH = 4

/**
 * Returns security schemes as A2A writes them. An agent that prints the card object of the JavaScript SDK
 * without its serializer sends the SDK's own tagged unions, `{"scheme": {"$case": "x", "value": {}}}` in
 * place of `{"x": {}}`, which no other client can read.
 */
export function plainSecuritySchemes(schemes: unknown): unknown {
  return isJsonObject(schemes) ? mapped(schemes, (scheme) => untagged(scheme, MAX_DEPTH)) : schemes
}

function untagged(value: unknown, depth: number): unknown {
  if (!isJsonObject(value) || depth === 0) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const tag = isJsonObject(member) ? member['$case'] : undefined
      if (!isJsonObject(member) || typeof tag !== 'string' || !('value' in member) || tag in value) {
        return [name, untagged(member, depth - 1)]
      }
      return [tag, untagged(member['value'], depth - 1)]
    }),
  )
}

function mapped(object: JsonObject, map: (value: unknown) => unknown): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value)]))
}
