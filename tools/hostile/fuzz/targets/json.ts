import { Buffer } from 'node:buffer'

import { parseJsonText } from '@signalbox/broker-core/internal'
import { JsonRpcError, parseJsonRpc } from '@signalbox/http-kit'
import {
  elementTexts,
  isIdText,
  isJsonObject,
  memberText,
  parseJson,
  readRequestId,
} from '@signalbox/http-kit/internal'
import * as fc from 'fast-check'

import { JSON_UNITS, jsonText } from '../grammar/json.ts'
import { argumentsText, jsonRpc } from '../grammar/messages.ts'
import type { Pieces } from '../grammar/pieces.ts'
import { almost, textOf } from '../grammar/pieces.ts'
import { assertHolds, assertSame, parserTarget, resultOf } from '../target.ts'

/** Returns the value of a JSON text that can be printed again; `undefined` for deeper ones. JSON.parse alone confuses keys. */
function shallowValue(text: string): { readonly value: unknown } | undefined {
  try {
    const value = parseJsonText(text)
    JSON.stringify(value)
    return { value }
  } catch {
    return undefined
  }
}

/** The time of an input has a limit, in which the checks count too. */
const LONG_TEXT = 65_536

function checkParse(text: string): void {
  const parsed = parseJson(text)
  const reference = shallowValue(text)
  if ('value' in parsed) {
    assertSame('parseJson', parsed.value, reference?.value)
  } else if (parsed.problem === 'not valid JSON') {
    assertHolds('parseJson refuses text that JSON.parse accepts', reference === undefined)
  }
  if (reference === undefined) return
  const { value } = reference
  if (isJsonObject(value)) {
    // Each key costs a scan of the text.
    for (const key of Object.keys(value).slice(0, text.length > LONG_TEXT ? 2 : 20)) {
      const source = memberText(text, key)
      assertSame(
        `memberText of ${JSON.stringify(key)}`,
        source === undefined ? 'nothing' : parseJsonText(source),
        value[key],
      )
    }
  } else if (Array.isArray(value)) {
    const elements = elementTexts(text)
    assertSame('elementTexts', elements.length, value.length)
    assertSame(
      'elementTexts',
      elements.slice(0, 20).map((element) => parseJsonText(element)),
      value.slice(0, 20),
    )
  }
}

function checkRpc(pieces: Pieces, encoding: 'utf8' | 'latin1'): void {
  const body = Buffer.from(textOf(pieces), encoding)
  const message = resultOf(() => parseJsonRpc(body, { maxKeys: 100_000, uniqueKeys: true }), JsonRpcError)
  readRequestId(body)
  if (message === undefined) return
  const envelope = parseJsonText(body.toString('utf8'))
  if (!isJsonObject(envelope)) throw new TypeError('a message that is not an object was accepted')
  if (message.kind === 'response') {
    assertHolds('an invalid id was accepted', isIdText(message.id) || message.id === 'null')
    return
  }
  assertSame('method', message.method, envelope['method'])
  assertSame(
    'params',
    message.paramsText === undefined ? undefined : parseJsonText(message.paramsText),
    envelope['params'],
  )
  if (message.kind === 'request') assertSame('id', JSON.parse(message.id), envelope['id'])
}

const METHODS = ['"tools/call"', '"initialize"', '"tools/list"', '"ping"', '"message/send"', '""', '1']

export const jsonTargets = [
  parserTarget({
    name: 'json',
    about: 'JSON within limits, and the scan that slices it, against JSON.parse',
    input: almost(jsonText, ...JSON_UNITS),
    check: (pieces) => checkParse(textOf(pieces)),
  }),
  parserTarget({
    name: 'json-rpc',
    about: 'JSON-RPC messages, against JSON.parse',
    input: fc.record({
      pieces: almost(
        jsonRpc(fc.constantFrom(...METHODS), fc.oneof(argumentsText(['channel', 'body', 'tags']), jsonText)),
        ...JSON_UNITS,
      ),
      encoding: fc.constantFrom('utf8' as const, 'utf8' as const, 'latin1' as const),
    }),
    check: ({ pieces, encoding }) => checkRpc(pieces, encoding),
  }),
]
