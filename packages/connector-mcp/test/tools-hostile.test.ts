import { JsonRpcError } from '@signalbox/http-kit'
import * as fc from 'fast-check'
import { anyCharacter } from '@signalbox/testkit/any-character'
import { TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { echoDirectory } from './agent-directory.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench, toolNamed } from './tool-bench.ts'

let bench: ToolBench

beforeAll(async () => {
  bench = await openToolBench(echoDirectory)
  await bench.call('queue_send', { channel: 'c', body: 'b' })
})

afterAll(() => bench[Symbol.asyncDispose]())

/** Values that some argument takes. */
const FITTING = [
  'c',
  'd',
  'echo',
  'queues',
  '2026-01-01T00:00:00Z',
  1,
  60,
  true,
  {},
  { a: 'b' },
  ['a'],
  '',
  'cXVldWVzIGE',
]
const NASTY = ['_AGENTS_.x', '*', '>', 'a..b', '\0', '\ud800', '*a*a*a*a*a*a*a*a*b', '[(\\', '__proto__']
const NUMBERS = [0, -1, -0, 1.5, 1e12, 1e300, 2 ** 53, -(2 ** 53), null]

const anything = fc.oneof(
  fc.constantFrom<unknown>(...FITTING, ...NASTY, ...NUMBERS),
  fc.string({ unit: anyCharacter, maxLength: 50 }),
  fc.jsonValue({ maxDepth: 3 }),
)

/** Mostly of the right type, so that much of it passes the check. */
function valueFor(schema: object): fc.Arbitrary<unknown> {
  const type: unknown = Reflect.get(schema, 'type')
  const ofType = FITTING.filter((value) =>
    type === 'array' ? Array.isArray(value) : typeof value === (type === 'integer' ? 'number' : type),
  )
  return fc.oneof({ weight: 9, arbitrary: fc.constantFrom<unknown>(...ofType) }, { weight: 1, arbitrary: anything })
}

describe('tools - hostile arguments', () => {
  test.each(TOOL_NAMES)('M7 - %s answers any arguments with a result or -32602', async (name) => {
    const { properties, required = [] } = toolNamed(bench.tools, name).definition.inputSchema
    const values = Object.entries(properties).map(([argument, schema]) => [argument, valueFor(schema)] as const)
    const args = fc.oneof(
      { weight: 6, arbitrary: fc.record(Object.fromEntries(values), { requiredKeys: [...required] }) },
      { weight: 2, arbitrary: fc.record(Object.fromEntries(values), { requiredKeys: [] }) },
      { weight: 1, arbitrary: fc.dictionary(fc.string(), anything) },
      { weight: 1, arbitrary: fc.jsonValue() },
    )
    const ends = { results: 0, refusals: 0 }
    await fc.assert(
      fc.asyncProperty(args, async (given) => {
        // Nobody waits for the result, so that no call waits either.
        const call = bench.call(name, JSON.parse(JSON.stringify(given)), AbortSignal.abort())
        const error: unknown = await call.then(
          async ({ settlement }) => settlement?.rollback(),
          (reason: unknown) => reason,
        )
        if (error !== undefined && !(error instanceof JsonRpcError && error.code === -32602)) throw error
        ends[error === undefined ? 'results' : 'refusals'] += 1
      }),
      { seed: 7, numRuns: 300 },
    )
    expect(ends.results, 'some of the arguments were right').toBeGreaterThan(10)
    expect(ends.refusals, 'some of them were wrong').toBeGreaterThan(10)
  })
})
