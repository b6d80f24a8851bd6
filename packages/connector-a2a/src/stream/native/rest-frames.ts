import { isJsonObject } from '@signalbox/http-kit'

import { errorDetails, limitDetails } from '../../native/error-info.ts'
import { agentRestError, restErrorText } from '../../rest/rest-error.ts'
import { parseForTranslation } from '../../wire/index.ts'
import type { NativeFrames } from './native-frames.ts'
import { asBytes, fromBytes } from './native-frames.ts'

/** The frames of the HTTP+JSON binding: an event is a result itself, or an error with its own event name. */
export const REST_FRAMES: NativeFrames = {
  result: (content) => `data: ${content}\n\n`,
  error(content) {
    const error = parseForTranslation(fromBytes(content))
    return errorEvent(asBytes(restErrorText(agentRestError(isJsonObject(error) ? error : {}))))
  },
  failure({ message, native: { code, reason, setting } }) {
    return {
      text: errorEvent(restErrorText({ code, message, reason, details: errorDetails(reason, limitDetails(setting)) })),
      code,
    }
  },
}

function errorEvent(text: string): string {
  return `event: error\ndata: ${text}\n\n`
}
