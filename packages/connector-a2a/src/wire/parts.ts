import type { JsonObject } from '@signalbox/http-kit'
import type { WireVersion } from './methods.ts'

import { defined, isObject } from './json.ts'
import type { MemberReader } from './member-reader.ts'

/**
 * The member of a data part's metadata that marks `data` as wrapped in `{value}`. 0.3 allows only objects as data, 1.0
 * any JSON. The official SDKs use the same mark.
 */
const WRAPPED = 'data_part_compat'

/** Translates a part of a message or an artifact. */
export function translatePart(part: MemberReader, to: WireVersion): JsonObject {
  return to === '1.0' ? partTo10(part) : partTo03(part)
}

function partTo03(part: MemberReader): JsonObject {
  const text = part.text('text')
  const raw = part.text('raw')
  const url = part.text('url')
  const metadata = part.object('metadata')
  const contents = [text, raw, url].filter((content) => content !== undefined).length
  // `null` is valid data, and no value of the other members.
  const hasData = part.has('data') || (contents === 0 && Object.hasOwn(part.value, 'data'))
  if (contents + Number(hasData) !== 1) throw part.invalidSelf('an object with one of "text", "raw", "url" and "data"')
  if (text !== undefined) return defined({ kind: 'text', text, metadata })
  if (hasData) return dataTo03(part.value['data'], metadata)
  const file = defined({ bytes: raw, uri: url, mimeType: part.string('mediaType'), name: part.string('filename') })
  return defined({ kind: 'file', file, metadata })
}

function dataTo03(data: unknown, metadata: JsonObject | undefined): JsonObject {
  if (isObject(data)) return defined({ kind: 'data', data, metadata })
  return { kind: 'data', data: { value: data }, metadata: { ...metadata, [WRAPPED]: true } }
}

function partTo10(part: MemberReader): JsonObject {
  const metadata = part.object('metadata')
  switch (part.string('kind') ?? inferKind(part)) {
    case 'text': {
      const text = part.text('text')
      if (text === undefined) throw part.invalid('text', 'a string')
      return defined({ text, metadata })
    }
    case 'file':
      return defined({ ...fileTo10(part.requiredChild('file')), metadata })
    case 'data':
      return dataTo10(part.requiredChild('data').value, metadata)
    default:
      throw part.invalid('kind', '"text", "file" or "data"')
  }
}

/** Returns the kind of a part without `kind`, as hand-written callers send it. */
function inferKind(part: MemberReader): string | undefined {
  return ['text', 'file', 'data'].find((kind) => part.has(kind))
}

function fileTo10(file: MemberReader): JsonObject {
  const raw = file.text('bytes')
  const url = raw === undefined ? file.text('uri') : undefined
  if (raw === undefined && url === undefined) throw file.invalidSelf('an object with "bytes" or "uri"')
  return { raw, url, filename: file.string('name'), mediaType: file.string('mimeType') }
}

function dataTo10(data: JsonObject, metadata: JsonObject | undefined): JsonObject {
  if (metadata?.[WRAPPED] !== true) return defined({ data, metadata })
  const { [WRAPPED]: _, ...rest } = metadata
  return defined({
    data: Object.hasOwn(data, 'value') ? data['value'] : data,
    metadata: Object.keys(rest).length === 0 ? undefined : rest,
  })
}
