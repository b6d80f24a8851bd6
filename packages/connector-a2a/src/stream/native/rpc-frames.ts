import { errorText } from '@signalbox/http-kit'

import { errorDetails, limitDetails } from '../../native/error-info.ts'
import type { StreamForm } from '../stream-form.ts'
import type { NativeFrames } from './native-frames.ts'
import { asBytes } from './native-frames.ts'

/** Returns the form of a stream whose events are JSON-RPC responses with this id, JSON source text. */
export function rpcForm(id: string): StreamForm {
  return {
    failure({ message, native: { code, reason, setting } }) {
      return { text: `data: ${errorText(id, code, message, errorDetails(reason, limitDetails(setting)))}\n\n`, code }
    },
  }
}

/** Returns the frames whose events are JSON-RPC responses with this id, JSON source text. */
export function rpcFrames(id: string): NativeFrames {
  const idBytes = asBytes(id)
  const start = `data: {"jsonrpc":"2.0","id":${idBytes},`
  return {
    ...rpcForm(idBytes),
    result: (content) => `${start}"result":${content}}\n\n`,
    error: (content) => `${start}"error":${content}}\n\n`,
  }
}
