import type { WireVersion } from '@signalbox/registry'

import type { A2aMethod } from './methods.ts'
import { UntranslatableError } from './untranslatable.ts'

/**
 * Translates the result of a method.
 * @throws UntranslatableError if the result is not what the method returns in its version
 */
export function translateResult(method: A2aMethod, from: WireVersion, to: WireVersion, result: unknown): unknown {
  if (from === to) return result
  throw new UntranslatableError(`${method.operation} is not translated yet`)
}
