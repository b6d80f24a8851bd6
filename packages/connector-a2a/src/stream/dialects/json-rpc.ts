import { isJsonObject, memberText } from '@signalbox/http-kit'

import { readA2a03 } from './a2a-0.3.ts'
import { readA2a10 } from './a2a-1.0.ts'
import type { Reading, SourceObject } from './reading.ts'

/**
 * Reads a JSON-RPC response with a result of A2A 0.3 or 1.0. Any other result becomes a plain
 * message.
 */
export function readJsonRpc({ text, value }: SourceObject): Reading | undefined {
  if (value['jsonrpc'] !== '2.0') return undefined
  if (isJsonObject(value['error'])) {
    const payload = memberText(text, 'error')
    return payload === undefined ? undefined : { type: 'error', payload }
  }
  const payload = memberText(text, 'result')
  if (payload === undefined) return undefined
  const { result } = value
  if (!isJsonObject(result)) return { type: 'message', payload }
  const source = { text: payload, value: result }
  return readA2a03(source) ?? readA2a10(source) ?? { type: 'message', payload }
}
