import { CeError } from '../errors.ts'
import type { HttpRequest } from '@signalbox/http-kit'

/** The content modes of the HTTP binding. */
export type ContentMode = 'structured' | 'binary' | 'batch'

const MEDIA_TYPE = /^application\/cloudevents(-batch)?(\+[a-z0-9.-]+)?[\t ]*(?:;(.*))?$/i
const CHARSET = /(?:^|;)[\t ]*charset[\t ]*=[\t ]*"?([^";\t ]*)/i

/** Returns the content mode of a request, from its headers alone. @throws CeError MEDIA_TYPE_UNSUPPORTED */
export function contentMode(headers: HttpRequest['headers']): ContentMode {
  if (headers['content-encoding'] !== undefined) {
    throw unsupported('Content-Encoding is not supported; send the body without it')
  }
  const [type, batch, format, parameters = ''] = MEDIA_TYPE.exec(headers['content-type'] ?? '') ?? []
  if (type !== undefined) {
    if (format?.toLowerCase() !== '+json') {
      throw unsupported(
        'the only supported CloudEvents format is JSON; send application/cloudevents+json or application/cloudevents-batch+json',
      )
    }
    const charset = CHARSET.exec(parameters)?.[1] ?? 'utf-8'
    if (!/^utf-?8$/i.test(charset)) throw unsupported(`charset is ${JSON.stringify(charset)}; it must be utf-8`)
    return batch === undefined ? 'structured' : 'batch'
  }
  if (headers['ce-specversion'] !== undefined) return 'binary'
  throw unsupported(
    'the request is not a CloudEvent; send application/cloudevents+json, application/cloudevents-batch+json, or ce- headers with ce-specversion',
  )
}

export function unsupported(reason: string): CeError {
  return new CeError('MEDIA_TYPE_UNSUPPORTED', `unsupported media type: ${reason}`)
}
