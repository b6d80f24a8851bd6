import type { AgentDirectory } from '@signalbox/connector-mcp'
import { argumentProblems, compileQuery, parseTimestamp, problemsText } from '@signalbox/http-kit/internal'
import * as fc from 'fast-check'
import type { TObject } from 'typebox'
import { Type } from 'typebox'
import { Check } from 'typebox/value'

import { CeError } from '../../../../packages/connector-cloudevents/src/errors.ts'
import { CE_ROUTES } from '../../../../packages/connector-cloudevents/src/routes/index.ts'
import { createTools } from '../../../../packages/connector-mcp/src/tools/index.ts'
import { JSON_UNITS } from '../grammar/json.ts'
import { argumentsText } from '../grammar/messages.ts'
import { almost, MAX_HEAD, phrase, textOf, word } from '../grammar/pieces.ts'
import { assertHolds, parserTarget, resultOf } from '../target.ts'

/** Only the schemas of its tools are used. */
const NO_AGENTS: AgentDirectory = {
  list: () => Promise.resolve([]),
  get: () => Promise.resolve(undefined),
  request: () => Promise.reject(new Error('no agents')),
}

const schemas = new Map<string, TObject>()
for (const [name, { definition }] of createTools({ agents: NO_AGENTS })) {
  // The definition is a copy of the schema, and still a schema.
  schemas.set(name, definition.inputSchema as unknown as TObject)
}

const toolInput = fc.constantFrom(...schemas.keys()).chain((tool) =>
  fc.record({
    tool: fc.constant(tool),
    pieces: almost(argumentsText(Object.keys(schemas.get(tool)?.properties ?? {})), ...JSON_UNITS),
  }),
)

function checkArguments(tool: string, text: string): void {
  const schema = schemas.get(tool)
  let args: unknown
  try {
    args = JSON.parse(text)
  } catch {
    return
  }
  if (schema === undefined) return
  const valid = Check(schema, args)
  if (valid) return
  const problems = argumentProblems(schema, args, 'tool')
  assertHolds(`${tool} refuses arguments and names no problem`, problems.length > 0)
  assertHolds(
    `${tool} explains a refusal in ${problemsText(problems).length} characters`,
    problemsText(problems).length < 16_384,
  )
}

const parameters = fc
  .array(
    fc.tuple(
      fc.oneof(
        fc.constantFrom('channel', 'group', 'client_id', 'receipt', 'max_messages', 'events_store_type', 'timeout'),
        word,
      ),
      phrase,
    ),
    { maxLength: 6 },
  )
  .map((pairs) => pairs.map(([name, value]) => `${name}=${encode(value)}`).join('&'))

function encode(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text) : text
}

const moments = fc.oneof(
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc
    .tuple(fc.nat(9999), fc.nat(13), fc.nat(32), fc.nat(25), fc.nat(61), fc.nat(61), fc.nat(999_999_999))
    .map(
      ([year, month, day, hour, minute, second, fraction]) =>
        `${pad(year, 4)}-${pad(month)}-${pad(day)}T${pad(hour)}:${pad(minute)}:${pad(second)}.${fraction}+${pad(hour)}:${pad(minute)}`,
    ),
)

function pad(value: number, length = 2): string {
  return String(value).padStart(length, '0')
}

const readStatistics = compileQuery(
  Type.Object({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    channel: Type.Optional(Type.String()),
  }),
  () => new RangeError('refused'),
)

export const toolTargets = [
  parserTarget({
    name: 'tool-arguments',
    about: 'arguments of every tool: refusals have short explanations',
    input: toolInput,
    check: ({ tool, pieces }) => checkArguments(tool, textOf(pieces)),
  }),
  parserTarget({
    name: 'query',
    about: 'query strings of every route of /ce, and of a management route',
    input: fc.record({
      route: fc.nat(CE_ROUTES.length - 1),
      pieces: almost(parameters, 'a=b&', '%', '&', 'channel=', '+'),
    }),
    check({ route, pieces }) {
      const text = textOf(pieces, MAX_HEAD)
      resultOf(() => CE_ROUTES[route]?.prepare(text), CeError)
      resultOf(() => readStatistics(text), RangeError)
    },
  }),
  parserTarget({
    name: 'timestamp',
    about: 'timestamps, against Date',
    input: almost(moments, '0', '9', '.', 'Z', '-00'),
    check(pieces) {
      const text = textOf(pieces)
      const read = parseTimestamp(text)
      if (read === undefined) return
      assertHolds('a timestamp is not a whole number', Number.isInteger(read))
      const wanted = new Date(text.replace(/(\.\d{3})\d+/, '$1')).getTime()
      assertHolds(`a timestamp is ${read}, and Date says ${wanted}`, read === wanted || read === wanted + 1)
    },
  }),
]
