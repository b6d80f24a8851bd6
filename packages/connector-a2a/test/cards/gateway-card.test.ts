import type { AgentCard } from '@a2a-js/sdk'
import { canonicalizeAgentCard } from '@a2a-js/sdk'
import { canonicalJson } from '@signalbox/http-kit/internal'
import * as fc from 'fast-check'
import { cases } from '@signalbox/testkit/property-cases'
import { describe, expect, test } from 'vitest'

import type { CardContext } from '../../src/cards/gateway-card.ts'
import { gatewayCard } from '../../src/cards/gateway-card.ts'
import { strictProblems } from './card-members.ts'

const PLACE = { base: 'https://broker.example', agentId: 'weather' }
const pure = (original: object, more: Partial<CardContext> = {}) =>
  gatewayCard(
    { ...original },
    { ...PLACE, bearer: false, callers: false, native: true, v03: true, push: true, shape: '1.0', ...more },
  )
const both = (original: object, more: Partial<CardContext> = {}) =>
  gatewayCard(
    { ...original },
    { ...PLACE, bearer: false, callers: false, native: true, v03: true, push: true, shape: 'both', ...more },
  )

/** The SDK's canonical text of a card as it was received. */
function sdkCanonical(card: unknown): string {
  return canonicalizeAgentCard(card as AgentCard)
}

/** A card of A2A 1.0 as the registry shows it, with everything in it that names the agent itself. */
const V10 = {
  agent_id: 'weather',
  name: 'Weather',
  description: 'Forecasts',
  url: 'http://10.0.0.7/rpc',
  version: '1.2.0',
  provider: { organization: 'Us', url: 'https://us.example' },
  documentationUrl: 'https://us.example/docs',
  iconUrl: 'https://us.example/icon.png',
  supportedInterfaces: [
    { url: 'grpc://10.0.0.7', protocolBinding: 'GRPC', protocolVersion: '1.0', tenant: 'grpc' },
    { url: 'http://10.0.0.8/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 'other' },
    { url: 'http://10.0.0.7/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 'acme' },
  ],
  capabilities: {
    streaming: true,
    pushNotifications: true,
    stateTransitionHistory: true,
    extendedAgentCard: true,
    extensions: [
      { uri: 'https://x.example/e', description: '', required: false, params: { a: 1, empty: {}, list: ['', 'b'] } },
      { uri: 'https://x.example/must', required: true },
      { description: 'without a URI' },
    ],
  },
  securitySchemes: { own: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } } },
  securityRequirements: [{ schemes: { own: { list: ['x'] } } }],
  defaultInputModes: ['text/plain', ''],
  defaultOutputModes: ['application/json'],
  skills: [
    {
      id: 'forecast',
      name: 'Forecast',
      description: '',
      tags: [],
      examples: ['rain?'],
      inputModes: [],
      securityRequirements: [{ schemes: { own: { list: [] } } }],
      own: 1,
    },
  ],
  signatures: [{ protected: 'a', signature: 'b' }],
  protocolVersions: ['1.0'],
  registered_by: 'alice',
  registered_at: '2026-01-01T00:00:00.000Z',
  last_seen: '2026-01-01T00:00:00.000Z',
  a2a: { wire: '1.0' },
  'x-own': { kept: [] },
}

/** A card of A2A 0.3. */
const V03 = {
  agent_id: 'weather',
  name: 'Weather',
  url: 'http://10.0.0.7/rpc',
  preferredTransport: 'GRPC',
  additionalInterfaces: [{ url: 'grpc://10.0.0.7', transport: 'GRPC' }],
  protocolVersion: '0.3.0',
  capabilities: { streaming: true, stateTransitionHistory: true },
  supportsAuthenticatedExtendedCard: true,
  securitySchemes: { own: { type: 'apiKey', in: 'header', name: 'X-Key' } },
  security: [{ own: [] }],
  skills: [{ id: 's', name: 'S', description: 'd', tags: ['t'], security: [{ own: [] }] }],
}

/** The interfaces of the gateway, in place of the agent's own. */
const GATEWAY_INTERFACES = [
  { url: 'https://broker.example/a2a/weather', protocolBinding: 'JSONRPC', tenant: 'acme', protocolVersion: '1.0' },
  { url: 'https://broker.example/a2a/weather', protocolBinding: 'HTTP+JSON', tenant: 'acme', protocolVersion: '1.0' },
  { url: 'https://broker.example/a2a/weather/v0.3', protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
]

describe('A20 - gateway card of A2A 1.0', () => {
  test('has the members of the version and no other, none of them empty', () => {
    expect(pure(V10)).toEqual({
      name: 'Weather',
      description: 'Forecasts',
      version: '1.2.0',
      provider: V10.provider,
      documentationUrl: V10.documentationUrl,
      iconUrl: V10.iconUrl,
      supportedInterfaces: GATEWAY_INTERFACES,
      capabilities: {
        streaming: true,
        pushNotifications: true,
        extendedAgentCard: true,
        extensions: [
          { uri: 'https://x.example/e', params: { a: 1, list: ['b'] } },
          { uri: 'https://x.example/must', required: true },
        ],
      },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['application/json'],
      skills: [{ id: 'forecast', name: 'Forecast', description: 'Forecast', tags: ['forecast'], examples: ['rain?'] }],
    })
    for (const card of [V10, V03, {}, { agent_id: 'weather', name: 'W', url: 'http://x' }]) {
      for (const bearer of [false, true]) expect(strictProblems(pure(card, { bearer }))).toEqual([])
    }
  })

  test('with authentication it asks for a bearer token, in the place of the credentials of the agent', () => {
    expect(pure(V10, { bearer: true })).toMatchObject({
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'bearer' } } },
      securityRequirements: [{ schemes: { bearer: { list: ['a2a'] } } }],
    })
    expect(JSON.stringify([pure(V10, { bearer: true }), both(V10, { bearer: true })])).not.toMatch(
      /own"?: ?\{"(?:api|type)/,
    )
  })

  test('has the same text in the canonical form of the SDK and of the specification', () => {
    for (const card of [V10, V03, {}]) {
      for (const bearer of [false, true]) {
        const shown = pure(card, { bearer })
        expect(sdkCanonical(shown)).toBe(canonicalJson(shown))
      }
    }
  })

  test('lists the interface of A2A 0.3, unless the registration leaves it out', () => {
    expect(JSON.stringify(pure(V10))).toContain('/v0.3')
    expect(JSON.stringify(pure(V10, { v03: false }))).not.toContain('/v0.3')
  })

  test('an agent without skills is a skill itself, and a provider needs both of its members', () => {
    expect(pure({ name: 'N', description: 'D', provider: { organization: 'Us', url: '' } })).toEqual({
      name: 'N',
      description: 'D',
      version: '0.0.0',
      supportedInterfaces: [
        { url: 'https://broker.example/a2a/weather', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url: 'https://broker.example/a2a/weather', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
        { url: 'https://broker.example/a2a/weather/v0.3', protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
      ],
      capabilities: { streaming: false, pushNotifications: false },
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [{ id: 'weather', name: 'N', description: 'D', tags: ['agent'] }],
    })
  })
})

describe('A20 - gateway card of both versions', () => {
  test("has the registry's members, those of A2A 0.3 and the interfaces of both", () => {
    const replaced = {
      a2a: undefined,
      signatures: undefined,
      securitySchemes: undefined,
      securityRequirements: undefined,
    }
    expect(both(V10)).toEqual({
      ...V10,
      ...replaced,
      url: 'https://broker.example/a2a/weather/v0.3',
      preferredTransport: 'JSONRPC',
      protocolVersion: '0.3.0',
      supportsAuthenticatedExtendedCard: true,
      defaultInputModes: ['text/plain'],
      supportedInterfaces: GATEWAY_INTERFACES,
      skills: [
        {
          id: 'forecast',
          name: 'Forecast',
          description: 'Forecast',
          tags: ['forecast'],
          examples: ['rain?'],
          inputModes: [],
          own: 1,
        },
      ],
    })
  })

  test('names nothing of the agent itself', () => {
    for (const card of [V10, V03]) {
      for (const shown of [both(card, { bearer: true }), pure(card, { bearer: true })]) {
        expect(JSON.stringify(shown)).not.toMatch(/10\.0\.0|grpc|X-Key|"own":\[|"own":\{/i)
      }
    }
  })

  test('each security scheme has the members of both versions, which Go needs, and the type, which the 0.3 SDK needs', () => {
    expect(both(V03, { bearer: true })).toMatchObject({
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', httpAuthSecurityScheme: { scheme: 'bearer' } } },
      security: [{ bearer: [] }],
      securityRequirements: [{ schemes: { bearer: { list: ['a2a'] } } }],
      supportsAuthenticatedExtendedCard: true,
      capabilities: { streaming: true, stateTransitionHistory: true, extendedAgentCard: true },
    })
    const open = both(V03)
    for (const name of ['securitySchemes', 'security', 'securityRequirements', 'additionalInterfaces']) {
      expect(open).not.toHaveProperty(name)
    }
  })

  test('members in the other spelling that SDKs read are replaced too', () => {
    const snake = {
      supported_interfaces: [{ url: 'http://10.0.0.7' }],
      security_schemes: { own: {} },
      preferred_transport: 'GRPC',
      skills: [{ id: 's', name: 'S', security_requirements: [{}] }],
    }
    expect(JSON.stringify(both(snake))).not.toMatch(/_interfaces|_schemes|_transport|_requirements/)
  })
})

test('A20 - gateway card: without official calls it offers the dialect at the plain address, and no streams of A2A 1.0', () => {
  const url = 'https://broker.example/a2a/weather'
  const dialect = both(V10, { native: false })
  expect(dialect).toMatchObject({ url, protocolVersion: '0.3.0', capabilities: { streaming: true } })
  expect(dialect['supportedInterfaces']).toEqual([{ url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' }])
  const without = pure(V10, { native: false })
  expect(without).toMatchObject({ capabilities: { streaming: false, pushNotifications: true } })
  expect(without['supportedInterfaces']).toMatchObject([{ url, protocolVersion: '1.0' }])
})

test('A20 - gateway card: any JSON object gives a card that strict clients read, and never an error', () => {
  const members = fc.dictionary(
    fc.constantFrom(...Object.keys(V10), '__proto__', 'security', 'uri', 'list', 'supported_interfaces'),
    fc.oneof(
      { depthSize: 'small' },
      fc.jsonValue(),
      fc.constantFrom('', null, [], {}, [null], [''], '\ud800', Infinity),
    ),
  )
  fc.assert(
    fc.property(members, fc.boolean(), (given, bearer) => {
      const original = {
        ...given,
        capabilities: given['capabilities'] ?? { extensions: [{ uri: 'u', params: given }] },
      }
      const shown: unknown = JSON.parse(JSON.stringify(pure(original, { bearer })))
      expect(strictProblems(shown)).toEqual([])
      expect(sdkCanonical(shown)).toBe(canonicalJson(shown))
      const superset = both(original, { bearer })
      expect(superset['url']).toBe('https://broker.example/a2a/weather/v0.3')
    }),
    { seed: 17, numRuns: cases(300) },
  )
})

test('A20 - card: links that are not http or https are left out of every shape', () => {
  const url = 'javascript:alert(1)'
  const original = { ...V10, provider: { organization: 'Us', url }, documentationUrl: url, iconUrl: url, icon_url: url }
  for (const card of [pure(original), both(original)]) expect(JSON.stringify(card)).not.toContain('javascript')
})

test('A20 - card: an agent with two tenants at its url shows both, each over both bindings', () => {
  const url = 'http://10.0.0.7/rpc'
  const at = (tenant: string) => ({ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant })
  const card = { name: 'One', url, supportedInterfaces: [at('acme'), at('other'), at('acme')] }
  for (const shown of [pure(card, { v03: false }), both(card)]) {
    const interfaces = shown['supportedInterfaces'] as readonly { tenant?: string; protocolBinding: string }[]
    const offered = interfaces.filter(({ tenant }) => tenant !== undefined)
    expect(offered.map(({ tenant, protocolBinding }) => [tenant, protocolBinding])).toEqual([
      ['acme', 'JSONRPC'],
      ['acme', 'HTTP+JSON'],
      ['other', 'JSONRPC'],
      ['other', 'HTTP+JSON'],
    ])
  }
})
