import { expect, test } from 'vitest'

import { validateCard } from '../src/card/validate-card.ts'
import { agentOptions, RegistryError } from '../src/index.ts'
import { ALICE, card, openBench } from './registry-bench.ts'

const anywhere = async (): Promise<undefined> => undefined

async function problems(a2a: unknown): Promise<readonly (readonly [unknown, unknown])[]> {
  try {
    await validateCard(card('a1', { a2a }), anywhere)
    return []
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    return error.details.map((problem) => [Reflect.get(problem, 'field'), Reflect.get(problem, 'allowed')])
  }
}

test('options - wire and v03 are kept with the card, and shown by the registry', async () => {
  const { node } = await openBench()
  const registry = await node()
  for (const a2a of [{}, { wire: '1.0' }, { wire: '0.3', v03: false }, { wire: 'auto', v03: true }]) {
    expect(await registry.register(card('a1', { a2a }), ALICE)).toMatchObject({ a2a })
    expect(registry.get('a1')?.['a2a']).toEqual(a2a)
  }
})

test('options - another value is refused with its field and the allowed values', async () => {
  expect(await problems({ wire: '2.0', v03: 'no', wires: '1.0' })).toEqual([
    ['a2a.wire', '1.0, 0.3 or auto'],
    ['a2a.v03', 'true or false'],
    ['a2a', 'an object with wire, v03, credentials and liveness alone'],
  ])
  for (const a2a of [null, [], 'auto', 7]) expect(await problems(a2a)).toEqual([['a2a', 'an object']])
})

test('options - a card without them, or with values of an earlier version, has the defaults', () => {
  for (const a2a of [undefined, null, 'x', {}, { wire: '9', v03: 'no' }]) {
    expect(agentOptions({ a2a })).toEqual({ wire: 'auto', v03: true, liveness: 'heartbeat' })
  }
  expect(agentOptions({ a2a: { wire: '0.3', v03: false } })).toEqual({ wire: '0.3', v03: false, liveness: 'heartbeat' })
})

test("security schemes - the SDK's tagged unions become the members that A2A has; everything else is kept", async () => {
  const flow = { tokenUrl: 'https://id.example/token', scopes: { a: 'A' } }
  const leaked = {
    bearer: { scheme: { $case: 'httpAuthSecurityScheme', value: { scheme: 'bearer', description: '' } } },
    oauth: {
      scheme: {
        $case: 'oauth2SecurityScheme',
        value: { flows: { flow: { $case: 'clientCredentials', value: flow } }, oauth2MetadataUrl: '' },
      },
    },
  }
  const { securitySchemes } = await validateCard(card('a1', { securitySchemes: leaked }), anywhere)
  expect(securitySchemes).toEqual({
    bearer: { httpAuthSecurityScheme: { scheme: 'bearer', description: '' } },
    oauth: { oauth2SecurityScheme: { flows: { clientCredentials: flow }, oauth2MetadataUrl: '' } },
  })
  const proper = {
    old: { type: 'http', scheme: 'bearer' },
    key: { apiKeySecurityScheme: { location: 'header', name: 'X' } },
    odd: {
      scheme: { $case: 7, value: {} },
      both: { $case: 'old', value: 1 },
      old: 2,
      list: [{ $case: 'x', value: 1 }],
    },
    nothing: null,
  }
  for (const given of [proper, 'none', null, []]) {
    expect((await validateCard(card('a1', { securitySchemes: given }), anywhere)).securitySchemes).toEqual(given)
  }
  expect('securitySchemes' in (await validateCard(card('a1'), anywhere))).toBe(false)
})
