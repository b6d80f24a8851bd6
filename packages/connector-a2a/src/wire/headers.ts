import type { WireVersion } from './methods.ts'

const EXTENSIONS: { readonly [V in WireVersion]: string } = { '1.0': 'a2a-extensions', '0.3': 'x-a2a-extensions' }

/**
 * Translates the headers of a request or an answer. Names are read in any case; the result has lower-case names. The
 * extensions have the target's header, and `a2a-version` is the target's version.
 */
export function translateHeaders(
  from: WireVersion,
  to: WireVersion,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const translated: Record<string, string> = {}
  for (const given of Object.keys(headers)) {
    const name = given.toLowerCase()
    const target = from !== to && name === EXTENSIONS[from] ? EXTENSIONS[to] : name
    const value = headers[given] ?? ''
    // A caller that serves both versions sends both headers.
    const other = translated[target]
    translated[target] = other === undefined || other === value ? value : `${other}, ${value}`
  }
  translated['a2a-version'] = to
  return translated
}
